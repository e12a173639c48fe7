import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'

/**
 * The options of a benchmark, and its operands, as many as from `least` to `most`. With `--help`, and when it is used
 * wrongly, the help is printed and the process ends.
 */
export function readOptions<const T extends ParseArgsOptionsConfig>(
  help: string,
  options: T,
  { least, most } = { least: 0, most: 0 },
) {
  if (process.argv.slice(2).some(arg => arg === '--help' || arg === '-h')) {
    process.stdout.write(help)
    process.exit()
  }
  const parsed = parse(help, options)
  const { length } = parsed.positionals
  if (length < least) return misused(help, 'something is missing')
  if (length > most) return misused(help, `unexpected argument: ${parsed.positionals[most]}`)
  return parsed
}

function parse<const T extends ParseArgsOptionsConfig>(help: string, options: T) {
  try {
    return parseArgs({ allowPositionals: true, options })
  } catch (error) {
    // What Node says behind the first sentence is about operands that look like options.
    return misused(help, (error as Error).message.replace(/\. To specify .*/s, ''))
  }
}

function misused(help: string, why: string): never {
  process.stderr.write(`${why}\n\n${help}`)
  process.exit(2)
}
