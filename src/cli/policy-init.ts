import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asError } from '../base/as-error.ts'
import { didYouMean } from '../base/nearest.ts'
import { StartupError } from '../base/refusals.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { misused, readArgs, type Shell, UsageError } from './shell.ts'

/** Of the package, from src/ and from dist/ alike. */
const packageFolder = fileURLToPath(new URL('../..', import.meta.url))
const cookbook = join(packageFolder, 'policies/cookbook')

export const help = `usage: agent-gateway policy init NAME --template TEMPLATE [--config FILE]

Writes a policy of the cookbook and its tests into Policy:Directory, as NAME.yaml and NAME.test.yaml, and makes the
folder where it is missing. Put your own hosts, paths and names in, run its tests with policy test, and assign it to an agent: no agent has it yet.

  --template TEMPLATE  one of ${templates().join(', ')}
${configHelp}

Example:
  agent-gateway policy init triage-bot --template github`

const options = { ...configOption, template: { type: 'string' } } as const

export async function run(shell: Shell): Promise<number> {
  const { values, positionals } = readArgs(shell, options, 1)
  const [name = misused('NAME is missing')] = positionals
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/.test(name) || name.endsWith('.test'))
    throw new UsageError('NAME must be letters, digits, dots, underscores and dashes, and not end with .test')
  const { template = misused('--template is needed') } = values
  if (!templates().includes(template))
    throw new UsageError(`there is no template ${template}${didYouMean(template, templates())}`)
  const { config, baseDirectory } = readConfiguration(shell, values.config)
  const folder = resolve(baseDirectory, config.Policy.Directory)
  const files = ['', '.test'].map(kind => ({
    path: join(folder, `${name}${kind}.yaml`),
    text: adapted(readFileSync(join(cookbook, `${template}${kind}.yaml`), 'utf8'), { folder, template, name }),
  }))
  const taken = files.find(({ path }) => existsSync(path))
  if (taken !== undefined) throw new StartupError(`${taken.path} is there already. Choose another name.`)
  for (const { path, text } of files) {
    write(folder, path, text)
    shell.print(path)
  }
  return 0
}

/** Names of the policies of the cookbook. */
function templates(): readonly string[] {
  const names = readdirSync(cookbook).filter(file => file.endsWith('.yaml') && !file.endsWith('.test.yaml'))
  return names.map(file => file.slice(0, -'.yaml'.length)).sort()
}

interface Adaptation {
  readonly folder: string
  readonly template: string
  readonly name: string
}

/** The text under another name, with the way to the schema from the folder. */
function adapted(text: string, { folder, template, name }: Adaptation): string {
  const named = text.replace(new RegExp(`^(name|policy): ${template}$`, 'm'), `$1: ${name}`)
  return named.replace('$schema=../..', `$schema=${relative(folder, packageFolder) || '.'}`)
}

/** @throws StartupError when it cannot be written, or another one was made since */
function write(folder: string, path: string, text: string): void {
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, text, { flag: 'wx' })
  } catch (error) {
    throw new StartupError(`${path} cannot be written (${asError(error).code}).`)
  }
}
