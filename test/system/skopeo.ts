/** skopeo speaks to registries as docker, podman and containerd do. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { startContainerRegistry } from '../clients/fixtures/container-registry.ts'
import { holdsKey, startKeyGateway } from '../clients/fixtures/key-gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const run = promisify(execFile)
const { origin, manifests } = await startContainerRegistry(t)
const { key, host } = await startKeyGateway(t, origin.url)
const image = (name: string) => `docker://${host}/${name}`
const tls = ['--src-tls-verify=false', '--dest-tls-verify=false']

t.test('an image is pulled and pushed through a virtual host, with a key as the password', async t => {
  const creds = `agent:${key}`
  const args = ['--insecure-policy', 'copy', ...tls, '--src-creds', creds, '--dest-creds', creds]
  await run('skopeo', [...args, image('lib/hello:latest'), image('team/copy:v1')])
  t.ok(manifests.get('team/copy:v1')?.equals(manifests.get('lib/hello:latest')!))
  const methods = new Set(origin.seen.map(({ method, target }) => `${method} ${target.split('/')[1]}`))
  for (const expected of ['GET store', 'POST v2', 'PUT v2']) t.ok(methods.has(expected), expected)
  t.notOk(holdsKey(origin.seen, key))
})

t.test('without the key nothing reaches the registry', async t => {
  origin.seen.length = 0
  for (const creds of [['--src-no-creds'], ['--src-creds', `agent:agw_${'x'.repeat(43)}`]]) {
    const args = ['--insecure-policy', 'copy', ...tls, ...creds, image('lib/hello:latest'), `dir:${testdir(t)}`]
    await t.rejects(run('skopeo', args), /unauthorized|401/i)
  }
  t.strictSame(origin.seen, [])
})
