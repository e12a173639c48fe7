import { escapeLines } from '../base/deceptive.ts'
import { didYouMean } from '../base/nearest.ts'
import { StartupError } from '../base/refusals.ts'
import { ownVersion } from '../runtime/version.ts'
import { type Command, type Shell, UsageError } from './shell.ts'

interface CommandEntry {
  readonly summary: string
  /** Loaded when it is run, so that a small command does not pay for the gateway. */
  readonly load: () => Promise<Command>
}

const commands: Readonly<Record<string, CommandEntry>> = {
  serve: { summary: 'start the gateway', load: () => import('./serve.ts') },
  token: { summary: 'print a management token of the first admin', load: () => import('./token.ts') },
  console: { summary: 'print a link that opens the console, signed in', load: () => import('./console.ts') },
  run: { summary: 'run a program that calls through the gateway, unchanged', load: () => import('./run.ts') },
  health: { summary: 'ask whether the gateway serves', load: () => import('./health.ts') },
  check: { summary: 'check the configuration and the policies', load: () => import('./check.ts') },
  'config show': { summary: 'show every setting and where its value is from', load: () => import('./config-show.ts') },
  doctor: { summary: 'check what the gateway needs around it', load: () => import('./doctor.ts') },
  backup: {
    summary: 'copy the data folder, also while the gateway runs',
    load: async () => (await import('./backup.ts')).backup,
  },
  restore: { summary: 'restore a backup', load: async () => (await import('./backup.ts')).restore },
  'ca show': {
    summary: 'show the certificates to trust for the forward proxy',
    load: async () => (await import('./ca.ts')).showing,
  },
  'ca create': {
    summary: 'make the certificate authority before the first start',
    load: async () => (await import('./ca.ts')).creating,
  },
  'ca rotate': { summary: 'replace the certificate authority', load: async () => (await import('./ca.ts')).rotating },
  'admin reset': {
    summary: 'give the first admin a new secret, and make all tokens void',
    load: () => import('./admin-reset.ts'),
  },
  'policy check': {
    summary: 'check policies, and warn of probable mistakes',
    load: () => import('./policy-check.ts'),
  },
  'policy diff': {
    summary: 'compare two policies, with requests that show a difference',
    load: () => import('./policy-diff.ts'),
  },
  'policy explain': { summary: 'show what a policy makes of a request', load: () => import('./policy-explain.ts') },
  'policy init': { summary: 'begin a policy from one of the cookbook', load: () => import('./policy-init.ts') },
  'policy propose': { summary: 'make a policy from what was seen', load: () => import('./policy-propose.ts') },
  'policy push': { summary: 'put a folder of policies into the store', load: () => import('./policy-push.ts') },
  'policy simulate': {
    summary: 'decide what was recorded with another policy',
    load: () => import('./policy-simulate.ts'),
  },
  'policy draft': { summary: 'make a rule from one request', load: () => import('./policy-draft.ts') },
  'policy drift': {
    summary: 'compare a policy with what its agents did',
    load: () => import('./policy-drift.ts'),
  },
  'policy test': { summary: 'run the tests of policies', load: () => import('./policy-test.ts') },
  'policy replay': {
    summary: 'decide the requests of a log again with another policy',
    load: () => import('./policy-replay.ts'),
  },
  'budget list': { summary: 'show what is spent of budgets', load: async () => (await import('./budget.ts')).listing },
  'budget show': { summary: 'show who has a budget', load: async () => (await import('./budget.ts')).showing },
  'budget raise': {
    summary: 'add to a budget in this window',
    load: async () => (await import('./budget.ts')).raising,
  },
  'prices check': {
    summary: 'show models that were called without a price',
    load: async () => (await import('./prices.ts')).checking,
  },
  'credential list': {
    summary: 'show the credentials that the gateway adds, never a value',
    load: async () => (await import('./credential.ts')).listing,
  },
  'credential test': {
    summary: 'get a new value of a credential now',
    load: async () => (await import('./credential.ts')).testing,
  },
  'credential connect': {
    summary: 'grant a credential access to your account',
    load: () => import('./credential-connect.ts'),
  },
  'credential discover': {
    summary: 'ask an MCP server where its tokens come from',
    load: () => import('./credential-discover.ts'),
  },
  'credential disconnect': {
    summary: 'remove what was granted, and revoke it',
    load: async () => (await import('./credential.ts')).disconnecting,
  },
  'hitl test-message': {
    summary: 'send a test message to reviewers, as the settings say',
    load: () => import('./hitl-test-message.ts'),
  },
  'audit verify': { summary: 'check the audit trail', load: async () => (await import('./audit.ts')).verifying },
  'audit export': {
    summary: 'print the audit trail as lines of JSON',
    load: async () => (await import('./audit.ts')).exporting,
  },
  'fleet status': { summary: 'show the gateways that share the database', load: () => import('./fleet-status.ts') },
  'fleet accept': {
    summary: 'go on with a database that has lost history',
    load: () => import('./fleet-accept.ts'),
  },
  'storage migrate': {
    summary: 'bring the PostgreSQL schema up to date, as its owner',
    load: () => import('./storage-migrate.ts'),
  },
  'storage copy': {
    summary: 'copy all data to PostgreSQL, while the gateway is stopped',
    load: () => import('./storage-copy.ts'),
  },
}

/** Runs the command that the arguments name and gives the exit code. Failures are one line, without a stack. */
export async function runCommand(given: Shell): Promise<number> {
  const shell = legible(given)
  const found = findCommand(shell.args)
  if (found === undefined) return explain(shell)
  const command = await found.entry.load()
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
function findCommand(args: readonly string[]): { readonly entry: CommandEntry; readonly words: number } | undefined {
  for (const words of [2, 1]) {
    const name = args.slice(0, words).join(' ')
    const entry = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (entry !== undefined) return { entry, words }
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
  const text = usage(asked ? group : '')
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
    ...entries.map(([name, { summary }]) => `  ${name.padEnd(width)}${summary}`),
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
  const given = args.slice(0, isGroup ? 2 : 1).join(' ')
  const meant =
    didYouMean(args.slice(0, 2).join(' '), names) || (isGroup ? '' : didYouMean(given, [...names, ...groups]))
  return `agent-gateway: there is no command "${given}"${meant || '.'}`
}
