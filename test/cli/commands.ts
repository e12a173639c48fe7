import { readFileSync } from 'node:fs'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { runMain, runToEnd } from '../fixtures/process.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

t.test('without a command the commands are listed and the exit code is 2', async t => {
  const shell = fakeShell([])
  t.equal(await runCommand(shell), 2)
  t.match(shell.complained[0], /^usage: agent-gateway COMMAND/)
})

t.test('an unknown command is named, the commands are listed and the exit code is 2', async t => {
  for (const [args, name] of [
    [['nothing', 'more'], 'nothing'],
    [['toString'], 'toString'],
  ] as const) {
    const shell = fakeShell(args)
    t.equal(await runCommand(shell), 2)
    t.match(shell.complained[0], `agent-gateway: there is no command "${name}".\n\nusage: agent-gateway COMMAND`)
  }
})

t.test('behind the first word of several commands these are listed, when the second is missing or wrong', async t => {
  for (const [args, said] of [
    [['policy'], 'behind "policy" must stand one of its commands.'],
    [['policy', 'nothing', 'more'], 'there is no command "policy nothing".'],
  ] as const) {
    const shell = fakeShell(args)
    t.equal(await runCommand(shell), 2)
    t.match(shell.complained[0], `agent-gateway: ${said}\n\nusage: agent-gateway policy COMMAND`)
    t.notMatch(shell.complained[0], /^ {2}serve/m)
  }
})

t.test('the command that was probably meant is suggested', async t => {
  for (const [args, meant] of [
    [['chek'], 'check'],
    [['polcy', 'check'], 'policy check'],
    [['policy', 'chekc'], 'policy check'],
    [['fleet', 'Status'], 'fleet status'],
    [['polic'], 'policy'],
    [['servee', '--config', 'x'], 'serve'],
  ] as const) {
    const shell = fakeShell(args)
    t.equal(await runCommand(shell), 2)
    const [first = ''] = shell.complained[0]?.split('\n') ?? []
    t.ok(first.endsWith(`", did you mean ${meant}?`), first)
  }
})

t.test('the version is that of the package', async t => {
  for (const asked of ['--version', '-v']) {
    const shell = fakeShell([asked])
    t.equal(await runCommand(shell), 0)
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    t.strictSame(shell.printed, [version])
  }
})

t.test('help is printed when it is asked for, for all and for each command', async t => {
  for (const asked of ['--help', '-h', 'help']) {
    const shell = fakeShell([asked])
    t.equal(await runCommand(shell), 0)
    t.match(shell.printed[0], /^usage: agent-gateway COMMAND/)
    const names = [...(shell.printed[0] ?? '').matchAll(/^ {2}(\S+(?: \S+)?) {2,}/gm)].map(([, name]) => name as string)
    t.ok(names.includes('serve') && names.includes('check'))
    t.equal(names.length, shell.printed[0]?.match(/^ {2}\S/gm)?.length, 'each name stands apart from its summary')
    for (const name of names) {
      const one = fakeShell([...name.split(' '), '--help'])
      t.equal(await runCommand(one), 0, name)
      const help = one.printed[0] ?? ''
      t.ok(help.startsWith(`usage: agent-gateway ${name} `), help)
      const [description = '', examples = ''] = help.split(/\n\nExamples?:\n/)
      t.ok(examples.includes(`agent-gateway ${name}`), `${name} has an example`)
      const used = examples.split('|').flatMap(part => part.match(/(?<=agent-gateway .*)--[a-z-]+/g) ?? [])
      for (const option of used) t.ok(description.includes(option), `${name} explains ${option}`)
    }
  }
})

t.test('the first word of several commands lists them when help is asked for', async t => {
  const shell = fakeShell(['policy', '--help'])
  t.equal(await runCommand(shell), 0)
  t.match(shell.printed[0], /^usage: agent-gateway policy COMMAND[\s\S]*policy check[\s\S]*policy test/)
  t.notMatch(shell.printed[0], /^ {2}serve/m)
})

t.test('an option that is not known is named, with the help of the command, and the exit code is 2', async t => {
  for (const args of [
    ['check', '--confg', 'x'],
    ['check', '--config'],
    ['token', 'more'],
  ]) {
    const shell = fakeShell(args)
    t.equal(await runCommand(shell), 2)
    t.match(shell.complained[0], /^agent-gateway: .{0,60}\n\nusage: agent-gateway /)
  }
})

t.test('the option that was probably meant is suggested', async t => {
  for (const [args, message] of [
    [['check', '--confg', 'x'], "Unknown option '--confg', did you mean --config?"],
    [['policy', 'test', '--covrage=1'], "Unknown option '--covrage', did you mean --coverage?"],
    [['check', '--x'], "Unknown option '--x'"],
  ] as const) {
    const shell = fakeShell(args)
    t.equal(await runCommand(shell), 2)
    t.ok(
      shell.complained[0]?.startsWith(`agent-gateway: ${message}\n\nusage: agent-gateway `),
      shell.complained[0] ?? '',
    )
  }
})

t.test('an older Node is refused in one clear sentence', async t => {
  const older = 'data:text/javascript,Object.defineProperty(process,"versions",{value:{node:"20.20.2"}})'
  const { code, out, err } = await runToEnd(t, ['serve'], { cwd: testdir(t, {}), node: ['--import', older] })
  t.strictSame([code, out], [1, ''])
  t.equal(err, 'agent-gateway needs Node.js 24 or newer; this is 20.20.2.\n')
})

t.test('the entry passes arguments and environment on, and ends with the exit code', async t => {
  const good = await runToEnd(t, ['check'], { cwd: testdir(t, {}) })
  t.match(good, { code: 0, out: 'defaults and environment: no mistakes; policies: none\n', err: '' })
  const bad = await runToEnd(t, ['check'], { cwd: testdir(t, {}), env: { SYSTEM__X: '1' } })
  t.match(bad, { code: 1, out: '', err: /env SYSTEM__X: unknown key/ })
})

t.test('a command whose reader leaves ends without a complaint', async t => {
  const run = runMain(t, ['--help'], { cwd: testdir(t, {}) })
  run.child.stdout?.destroy()
  t.equal(await run.ended, 0)
  t.equal(run.err(), '')
})
