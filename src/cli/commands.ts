import { escapeLines } from '../base/deceptive.ts'
import { didYouMean } from '../base/nearest.ts'
import { StartupError } from '../base/refusals.ts'
import { ownVersion } from '../runtime/version.ts'
import { type Command, type Shell, UsageError } from './shell.ts'

/** A command is loaded when it is run, so that a small one does not pay for the gateway. */
type CommandEntry = readonly [summary: string, load: () => Promise<Command>]

const commands: Readonly<Record<string, CommandEntry>> = {
  serve: ['start the gateway', () => import('./serve.ts')],
  token: ['print a management token of the first admin', () => import('./token.ts')],
  console: ['print a link that opens the console, signed in', () => import('./console.ts')],
  run: ['run a program that calls through the gateway, unchanged', () => import('./run.ts')],
  health: ['ask whether the gateway serves', () => import('./health.ts')],
  check: ['check the configuration and the policies', () => import('./check.ts')],
  'config show': ['show every setting and where its value is from', () => import('./config-show.ts')],
  doctor: ['check what the gateway needs around it', () => import('./doctor.ts')],
  backup: ['copy the data folder, also while the gateway runs', async () => (await import('./backup.ts')).backup],
  restore: ['restore a backup', async () => (await import('./backup.ts')).restore],
  'ca show': ['show the certificates to trust for the forward proxy', async () => (await import('./ca.ts')).showing],
  'ca create': [
    'make the certificate authority before the first start',
    async () => (await import('./ca.ts')).creating,
  ],
  'ca rotate': ['replace the certificate authority', async () => (await import('./ca.ts')).rotating],
  'admin reset': ['give the first admin a new secret, and make all tokens void', () => import('./admin-reset.ts')],
  'policy check': ['check policies, and warn of probable mistakes', () => import('./policy-check.ts')],
  'policy diff': ['compare two policies, with requests that show a difference', () => import('./policy-diff.ts')],
  'policy explain': ['show what a policy makes of a request', () => import('./policy-explain.ts')],
  'policy init': ['begin a policy from one of the cookbook', () => import('./policy-init.ts')],
  'policy propose': ['make a policy from what was seen', () => import('./policy-propose.ts')],
  'policy push': ['put a folder of policies into the store', () => import('./policy-push.ts')],
  'policy simulate': ['decide what was recorded with another policy', () => import('./policy-simulate.ts')],
  'policy draft': ['make a rule from one request', () => import('./policy-draft.ts')],
  'policy drift': ['compare a policy with what its agents did', () => import('./policy-drift.ts')],
  'policy test': ['run the tests of policies', () => import('./policy-test.ts')],
  'policy replay': ['decide the requests of a log again with another policy', () => import('./policy-replay.ts')],
  'budget list': ['show what is spent of budgets', async () => (await import('./budget.ts')).listing],
  'budget show': ['show who has a budget', async () => (await import('./budget.ts')).showing],
  'budget raise': ['add to a budget in this window', async () => (await import('./budget.ts')).raising],
  'prices check': ['show models that were called without a price', async () => (await import('./prices.ts')).checking],
  'credential list': [
    'show the credentials that the gateway adds, never a value',
    async () => (await import('./credential.ts')).listing,
  ],
  'credential test': ['get a new value of a credential now', async () => (await import('./credential.ts')).testing],
  'credential connect': ['grant a credential access to your account', () => import('./credential-connect.ts')],
  'credential discover': ['ask an MCP server where its tokens come from', () => import('./credential-discover.ts')],
  'credential disconnect': [
    'remove what was granted, and revoke it',
    async () => (await import('./credential.ts')).disconnecting,
  ],
  'hitl test-message': [
    'send a test message to reviewers, as the settings say',
    () => import('./hitl-test-message.ts'),
  ],
  'audit verify': ['check the audit trail', async () => (await import('./audit.ts')).verifying],
  'audit export': ['print the audit trail as lines of JSON', async () => (await import('./audit.ts')).exporting],
  'fleet status': ['show the gateways that share the database', () => import('./fleet-status.ts')],
  'fleet accept': ['go on with a database that has lost history', () => import('./fleet-accept.ts')],
  'storage migrate': ['bring the PostgreSQL schema up to date, as its owner', () => import('./storage-migrate.ts')],
  'storage copy': ['copy all data to PostgreSQL, while the gateway is stopped', () => import('./storage-copy.ts')],
}

/** Runs the command that the arguments name and gives the exit code. Failures are one line, without a stack. */
export async function runCommand(given: Shell): Promise<number> {
  const shell = legible(given)
  const found = findCommand(shell.args)
  if (found === undefined) return explain(shell)
  const command = await found.load()
  const args = shell.args.slice(found.words)
  if (ownArgs(args).some(arg => arg === '--help' || arg === '-h')) {
    shell.print(command.help)
    return 0
  }
  try {
    return await command.run({ ...shell, args })
  } catch (error) {
    if (error instanceof UsageError) shell.complain(`agent-gateway: ${error.message}\n\n${command.help}`)
    else if (error instanceof StartupError) shell.complain(`agent-gateway: ${error.message}`)
    else throw error
    return error instanceof UsageError ? 2 : 1
  }
}

/** Arguments behind `--` are those of another program. */
const ownArgs = (args: readonly string[]): readonly string[] =>
  args.includes('--') ? args.slice(0, args.indexOf('--')) : args

/** Output of commands may contain text of agents, from the log or the audit trail. */
function legible(shell: Shell): Shell {
  return {
    ...shell,
    print: text => shell.print(escapeLines(text)),
    complain: text => shell.complain(escapeLines(text)),
  }
}

/** The entry with the longest name that the arguments begin with. */
function findCommand(args: readonly string[]) {
  for (const words of [2, 1]) {
    const name = args.slice(0, words).join(' ')
    const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (entry !== undefined) return { load: entry[1], words }
  }
  return undefined
}

const helpWords: readonly (string | undefined)[] = ['--help', '-h', 'help']

function explain(shell: Shell): number {
  const [first, second] = shell.args
  if (first === '--version' || first === '-v') {
    shell.print(ownVersion())
    return 0
  }
  // `policy --help` shows the commands that begin with `policy`.
  const group = Object.keys(commands).some(name => name.startsWith(`${first} `)) ? `${first} ` : ''
  const asked = helpWords.includes(group === '' ? first : second)
  const text = usage(group)
  if (asked) shell.print(text)
  else shell.complain([...(first === undefined ? [] : [unknown(shell.args), '']), text].join('\n'))
  return asked ? 0 : 2
}

function usage(group: string): string {
  const entries = Object.entries(commands).filter(([name]) => name.startsWith(group))
  const width = Math.max(...entries.map(([name]) => name.length)) + 2
  return [
    `usage: agent-gateway ${group}COMMAND [OPTIONS]`,
    '',
    ...entries.map(([name, [summary]]) => `  ${name.padEnd(width)}${summary}`),
    '',
    'Each command explains itself with --help; --version prints the version.',
  ].join('\n')
}

function unknown(args: readonly string[]): string {
  const names = Object.keys(commands)
  const groups = new Set(names.map(name => name.replace(/ .*/, '')))
  const [first = ''] = args
  // `policy` alone is the beginning of several commands: the second word is missing or wrong.
  const isGroup = groups.has(first)
  if (isGroup && args.length === 1) return `agent-gateway: behind "${first}" must stand one of its commands.`
  const given = args.slice(0, isGroup ? 2 : 1).join(' ')
  const meant =
    didYouMean(args.slice(0, 2).join(' '), names) || (isGroup ? '' : didYouMean(given, [...names, ...groups]))
  return `agent-gateway: there is no command "${given}"${meant || '.'}`
}
