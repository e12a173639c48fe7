import { execFile } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { testdir } from '../fixtures/testdir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [, command = ''] = /^(agent-gateway run .*)$/m.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []

/** In a network of its own example.org is this machine. */
const script = `
node test/fixtures/example-org.ts "$PWD/example-org.pem" &
until test -s example-org.pem; do sleep 0.05; done
export FORWARDPROXY__ENABLED=true PROXY__CAFILE="$PWD/example-org.pem"
node src/main.ts serve >/dev/null 2>started &
until grep -q 'is ready' started; do sleep 0.05; done
agent-gateway() { node src/main.ts "$@"; }
${command}
`

t.test('the command of the README calls through the gateway', async t => {
  t.equal(command, 'agent-gateway run --agent tour -- curl https://example.org')
  const directory = testdir(t, { hosts: '127.0.0.1 localhost example.org\n' })
  for (const name of ['src', 'test', 'node_modules', 'package.json', 'openapi.json', 'policies', 'gateway.yaml'])
    symlinkSync(join(root, name), join(directory, name))
  const args = [
    ...[
      '--unshare-user',
      '--uid',
      '0',
      '--gid',
      '0',
      '--cap-add',
      'CAP_NET_BIND_SERVICE',
      '--unshare-net',
      '--unshare-pid',
    ],
    ...[
      '--die-with-parent',
      '--dev-bind',
      '/',
      '/',
      '--proc',
      '/proc',
      '--ro-bind',
      join(directory, 'hosts'),
      '/etc/hosts',
    ],
    ...['--chdir', directory, 'bash', '-c', script],
  ]
  const { stdout, stderr } = await promisify(execFile)('bwrap', args, { timeout: 200_000 })
  t.equal(stdout, 'Example Domain\n')
  t.match(
    stderr,
    /^agent-gateway run: curl calls as the agent tour \(the agent tour is new, .*\) through http:\/\/127\.0\.0\.1:7081 and trusts /m,
  )
})
