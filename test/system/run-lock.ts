/** A program that is locked in reaches the gateway and nothing else. Threat T74. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type ListenOptions } from 'node:net'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { secureName, startSecureOrigin } from '../fixtures/origin.ts'
import { type RunSetup, runMain, runToEnd } from '../fixtures/process.ts'
import { startRun } from '../fixtures/run-command.ts'
import { testdir } from '../fixtures/testdir.ts'

/** Others cannot run a program in a clone below a folder of root alone, such as /root. */
const isOpen = (path: string): boolean => (statSync(path).mode & 0o001) !== 0 && (path === '/' || isOpen(dirname(path)))
/** Users that run the command: the one of the tests, and if that is root, another one too. */
const users = process.getuid?.() === 0 ? ['root', ...(isOpen(process.execPath) ? ['nobody'] : [])] : ['me']
if (users[0] === 'root' && users.length === 1) {
  t.fail(`nobody may not run ${process.execPath}: clone into a folder that others may enter, and run this again`)
}

/** The command as a user, with a key, since only one user can read the credential of the first admin. */
async function startAs(t: Test, user: string) {
  const { gateway, runs, proxy } = await startRun(t)
  const { id } = await gateway.agent({ name: 'tour' })
  const { key } = JSON.parse((await gateway.manage('POST', `/agents/${id}/keys`, { name: 'mine' })).text)
  const cwd = testdir(t)
  chmodSync(cwd, 0o777)
  const env = { ...runs.env, AGENT_GATEWAY_KEY: key, TMPDIR: cwd, HOME: cwd, PATH: '/usr/bin:/bin' }
  const setup: RunSetup = { cwd, env, ...(user === 'nobody' && { user: 65_534 }) }
  const args = (command: readonly string[]) => ['run', '--lock', '--', ...command]
  return {
    ...{ gateway, id, proxy, cwd },
    run: (...command: string[]) => runToEnd(t, args(command), setup),
    start: (...command: string[]) => runMain(t, args(command), setup),
  }
}

/** A server that counts who reached it. */
async function listen(t: Test, options: ListenOptions) {
  const reached = { count: 0 }
  const server = createServer(socket => {
    reached.count += 1
    socket.on('error', () => {}).end('reached')
  })
  await once(server.listen(options), 'listening')
  t.teardown(() => server.close())
  return { reached, server }
}

/** Tries each way out, and prints what came of it. */
const probe = `
const net = require('node:net'), dgram = require('node:dgram'), dns = require('node:dns')
const [tcp, udp, ...paths] = process.argv.slice(1)
const show = name => result => console.log(name, result)
const over = place => new Promise(done => net.connect(place).on('error', e => done(e.code)).on('connect', () => done('connected')))
const send = port => new Promise(done => {
  const socket = dgram.createSocket('udp4')
  socket.on('error', e => done(e.code))
  socket.send('out', port, '192.0.2.1', e => done(e ? e.code : 'sent'))
})
const near = () => new Promise(done => dgram.createSocket('udp4').send('in', Number(udp), '127.0.0.1', done))
Promise.all([
  over({ port: Number(tcp), host: '127.0.0.1' }).then(show('tcp')),
  over({ port: 443, host: '192.0.2.1' }).then(show('far')),
  near().then(() => send(53)).then(show('far udp')),
  new Promise(done => dns.resolve4('example.org', e => done(e ? 'failed' : 'resolved'))).then(show('dns')),
  ...paths.map(path => over({ path: path.replace('@', '\\0') }).then(show(path))),
]).then(() => process.exit())
`

for (const user of users) {
  t.test(`a program of ${user} that is locked calls through the gateway, and nothing else leads out`, async t => {
    const { gateway, run } = await startAs(t, user)
    const { port } = await startSecureOrigin(t)
    const fetched = await run('curl', '-sS', `https://${secureName}:${port}/things`)
    t.match(fetched, { code: 0, out: 'hello from upstream', err: /Every other way out is shut\./ })
    t.match(await gateway.exchanges(1), [{ road: 'intercepted' }])

    const { reached, server } = await listen(t, { port: 0, host: '127.0.0.1' })
    const { port: tcp } = server.address() as AddressInfo
    const datagrams = createSocket('udp4')
    t.teardown(() => datagrams.close())
    let received = 0
    datagrams.on('message', () => received++)
    await once(datagrams.bind(0, '127.0.0.1'), 'listening')
    const folder = mkdtempSync('/tmp/agent-gateway-test-')
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    chmodSync(folder, 0o777)
    const named = await listen(t, { path: join(folder, 'socket') })
    chmodSync(join(folder, 'socket'), 0o777)
    const abstract = `agent-gateway-test-${process.pid}`
    const unnamed = await listen(t, { path: `\0${abstract}` })
    const paths = [join(folder, 'socket'), `@${abstract}`]
    const tried = await run(process.execPath, '-e', probe, String(tcp), String(datagrams.address().port), ...paths)
    for (const [what, result] of [
      ['tcp', 'ECONNREFUSED'],
      ['far', 'ENETUNREACH'],
      ['far udp', 'ENETUNREACH'],
      ['dns', 'failed'],
      [paths[0], 'ENOENT'],
      [paths[1], 'ECONNREFUSED'],
    ] as const) {
      t.ok(tried.out.includes(`${what} ${result}\n`), `${what}: ${result}\n${tried.out}`)
    }
    t.strictSame([reached.count, received, named.reached.count, unnamed.reached.count], [0, 0, 0, 0])
  })

  t.test(`the exit code and the signals of a locked program of ${user} are as without a lock`, async t => {
    const { run, start } = await startAs(t, user)
    t.equal((await run('sh', '-c', 'exit 7')).code, 7)
    t.equal((await run('sh', '-c', 'kill -TERM $$')).code, 143)
    t.match(await run('no-such-program'), { code: 127, err: /no-such-program: not found/ })
    t.equal((await run('/etc/passwd')).code, 126)
    const trap = 'trap "echo told; exit 9" TERM; echo ready; while :; do sleep 0.05; done'
    const running = start('sh', '-c', trap)
    await running.shows(/ready/)
    running.child.kill('SIGTERM')
    t.equal(await running.ended, 9)
    t.match(running.out(), 'told')
  })

  t.test(`a locked program of ${user} has no privileges, sees no other processes, and finds no key`, async t => {
    const { run } = await startAs(t, user)
    const script =
      'grep -E "Cap|NoNew" /proc/self/status; ls -d /proc/[0-9]* | wc -l; env; cat /proc/1/environ; ls /proc/self/fd'
    const { out } = await run('sh', '-c', script)
    for (const set of ['CapPrm', 'CapEff']) t.match(out, new RegExp(`${set}:\\s+0{16}\n`))
    t.match(out, /NoNewPrivs:\s+1\n/)
    t.ok(Number(/^(\d+)$/m.exec(out)?.[1]) < 10, 'few processes')
    t.notMatch(out, 'agw_')
    t.notMatch(out, 'NODE_CHANNEL_FD=3\n')
  })
}

t.test('with --no-unix-sockets a program opens no unix socket, and calls and starts others as before', async t => {
  const { runs } = await startRun(t)
  const folder = testdir(t)
  const { reached } = await listen(t, { path: join(runs.cwd, 'socket') })
  const script = `import os, socket, subprocess, sys
def tried(name, what):
  try: what(); print(name, 'open')
  except OSError as error: print(name, os.strerror(error.errno))
def connect(): socket.socket(socket.AF_UNIX).connect('socket')
tried('unix', connect)
tried('datagrams', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tried('pair', lambda: socket.socketpair())
tried('vsock', lambda: socket.socket(40))
tried('inet', lambda: socket.create_connection(('127.0.0.1', 3128)))
print(subprocess.run(['node', '-p', '1 + 1'], capture_output=True, text=True).stdout)`
  const asked = (...options: string[]) =>
    runToEnd(t, ['run', '--agent', 'tour', '--lock', ...options, '--', 'python3', '-c', script], {
      ...runs,
      env: { ...runs.env, TMPDIR: folder },
    })
  const refused = 'Address family not supported by protocol'
  const shut = await asked('--no-unix-sockets')
  t.match(
    { code: shut.code, out: shut.out.split('\n') },
    {
      code: 0,
      out: [`unix ${refused}`, `datagrams ${refused}`, 'pair open', `vsock ${refused}`, 'inet open', '2'],
    },
  )
  t.equal(reached.count, 0)
  t.match((await asked()).out, /^unix open\ndatagrams open\npair open\n/)
  t.equal(reached.count, 1)
})

t.test('what a program trusts by the system alone trusts the gateway as well', async t => {
  const { run } = await startAs(t, users[0]!)
  const { port } = await startSecureOrigin(t)
  const url = `https://${secureName}:${port}/`
  t.match(await run('wget', '-qO-', url), { code: 0, out: 'hello from upstream' })
  t.match(await run('env', '-u', 'CURL_CA_BUNDLE', '-u', 'SSL_CERT_FILE', 'curl', '-sS', url), { code: 0 })
})

t.test('files of the gateway are hidden from a locked program, or cannot be changed', async t => {
  const { gateway, runs } = await startRun(t)
  const { directory } = gateway
  mkdirSync(join(directory, 'policies'), { recursive: true })
  writeFileSync(join(directory, 'policies', 'a.yaml'), 'name: a\ndefault: Deny\n')
  const script = 'ls data; echo x > policies/a.yaml; echo x > data/new; cat policies/a.yaml; echo own > own; cat own'
  const { code, out } = await runToEnd(t, ['run', '--agent', 'tour', '--lock', '--', 'sh', '-c', script], runs)
  t.match({ code, out }, { code: 0, out: 'name: a\ndefault: Deny\nown\n' })
  t.ok(existsSync(join(directory, 'own')), 'its folder is its own')
  t.notOk(existsSync(join(directory, 'data', 'new')))
})

t.test('a locked program ends with the command', async t => {
  const { start } = await startAs(t, users[0]!)
  const running = start('sh', '-c', 'echo ready; cat')
  await running.shows(/ready/)
  running.child.kill('SIGKILL')
  // Its input is still open: it was ended.
  t.equal(await running.ended, 'SIGKILL')
})

t.test('without bubblewrap nothing runs, and the message has the remedy', async t => {
  const { runs } = await startRun(t)
  const setup = { ...runs, env: { ...runs.env, PATH: '/none' } }
  const ended = await runToEnd(t, ['run', '--agent', 'tour', '--lock', '--', process.execPath, '-e', ''], setup)
  t.match(ended, { code: 126, out: '', err: /needs bubblewrap, which is not here .*apt-get install bubblewrap/ })
})

t.test('where namespaces cannot be made nothing runs, and the message has the remedy', async t => {
  const { runs } = await startRun(t)
  const bin = testdir(t, { bwrap: '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n' })
  chmodSync(join(bin, 'bwrap'), 0o755)
  const setup = { ...runs, env: { ...runs.env, PATH: `${bin}:${process.env['PATH']}` } }
  const ended = await runToEnd(t, ['run', '--agent', 'tour', '--lock', '--', 'echo', 'ran'], setup)
  t.match(ended, { code: 126, out: '', err: /uid map: Permission denied\. .*AppArmor profile for bwrap/ })
})
