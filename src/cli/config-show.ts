import { type ShownSetting, showSettings } from '../config/shown.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { jsonHelp, jsonOption, printResult, readArgs, type Shell } from './shell.ts'

export const help = `usage: agent-gateway config show [--json] [--config FILE]

Prints every setting: its name, where its value is from (the place in the file, the variable, or default), and the value.
Secrets are ***. The values are those of the next start or reload, not those of a gateway that runs.

${jsonHelp}: settings with name, value, from
${configHelp}

Examples:
  agent-gateway config show | grep -v ' default '
  agent-gateway config show --json | jq '.settings[] | select(.name == "Logging:Level")'`

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, { ...configOption, ...jsonOption })
  const { config, given } = readConfiguration(shell, values.config)
  const settings = showSettings(config, given)
  return printResult(shell, values, { settings }, table(settings))
}

function table(settings: readonly ShownSetting[]): readonly string[] {
  const width = (of: 'name' | 'from') => Math.max(...settings.map(setting => setting[of].length))
  const [names, places] = [width('name'), width('from')]
  return settings.map(({ name, from, value }) => `${name.padEnd(names)}  ${from.padEnd(places)}  ${textOf(value)}`)
}

const textOf = (value: unknown): string => {
  if (value === null) return '-'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
