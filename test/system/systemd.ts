import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { runMain } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const deploy = (name: string) => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url))

/** Stands for systemd: shows each message with the user that sent it, and lets its barrier pass. */
const manager = `
import array, os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
print("listening", flush=True)
while True:
    data, more, _, _ = s.recvmsg(4096, 1024)
    uid = None
    for level, kind, value in more:
        if kind == socket.SCM_CREDENTIALS:
            uid = struct.unpack("3i", value[:12])[1]
        if kind == socket.SCM_RIGHTS:
            for fd in array.array("i", value): os.close(fd)
    print(uid, data.decode().strip().replace("\\n", " "), flush=True)
`

async function startManager(t: Test) {
  const path = join(testdir(t), 'notify')
  const child = spawn('python3', ['-c', manager, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => String((await lines.next()).value)
  t.equal(await next(), 'listening')
  return {
    path,
    /** The next message but barriers, and beats unless they are asked for. */
    async next(withBeats = false): Promise<string> {
      for (;;) {
        const line = await next()
        if (!line.includes('BARRIER') && (withBeats || !line.includes('WATCHDOG'))) return line
      }
    },
  }
}

t.test('systemd is told in order of the start, a reload, a failed reload and the stop', async t => {
  const { path, next } = await startManager(t)
  const directory = testdir(t, { policies: {} })
  const gateway = runMain(t, ['serve'], {
    cwd: directory,
    env: { NOTIFY_SOCKET: path, WATCHDOG_USEC: '400000', SYSTEM__SERVER__HTTP__PORT: '0' },
  })
  t.match(await next(), /^0 READY=1 STATUS=Serving at http:\/\/127\.0\.0\.1:\d+$/)
  for (let beat = 0; beat < 3; beat++) t.equal(await next(true), '0 WATCHDOG=1')
  gateway.child.kill('SIGHUP')
  t.match(await next(), /^0 RELOADING=1 MONOTONIC_USEC=[1-9]\d+$/)
  t.match(await next(), /^0 READY=1 STATUS=Serving at \S+$/)
  spawnSync('sh', ['-c', 'echo "name: [" > policies/broken.yaml'], { cwd: directory })
  gateway.child.kill('SIGHUP')
  t.match(await next(), /RELOADING=1/)
  t.match(await next(), /READY=1 STATUS=.*; the last reload failed, see the log/)
  gateway.child.kill('SIGTERM')
  t.match(await next(), /^0 STOPPING=1 STATUS=/)
  t.equal(await gateway.ended, 0)
})

t.test('without systemd-notify the gateway serves all the same, and the log says it once', async t => {
  const { path } = await startManager(t)
  const gateway = runMain(t, ['serve'], {
    cwd: testdir(t),
    env: { NOTIFY_SOCKET: path, PATH: '/nowhere', WATCHDOG_USEC: '100000', SYSTEM__SERVER__HTTP__PORT: '0' },
  })
  await gateway.shows(/agent-gateway is ready/)
  await gateway.shows(/systemd cannot be told how the gateway is/)
  gateway.child.kill('SIGTERM')
  t.equal(await gateway.ended, 0)
  t.equal(gateway.out().split('systemd cannot be told').length, 2)
})

t.test('the units are valid, and as closed as they say', async t => {
  const units = ['agent-gateway.service', 'agent@.service', 'agent-gateway.socket'].map(deploy)
  const verified = spawnSync('systemd-analyze', ['verify', ...units], { encoding: 'utf8' })
  // The package is not installed here.
  const problems = verified.stderr
    .split('\n')
    .filter(line => line !== '' && !/is not executable: No such file/.test(line))
  t.strictSame(problems, [])
  for (const [unit, threshold] of [
    ['agent-gateway.service', 15],
    ['agent@.service', 12],
  ] as const) {
    const args = ['security', '--offline=true', `--threshold=${threshold}`, '--no-pager', deploy(unit)]
    const { status, stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
    t.equal(status, 0, stdout.trim().split('\n').at(-1) ?? '')
  }
})
