import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'
import { holdsKey, startKeyGateway } from './fixtures/key-gateway.ts'

const run = promisify(execFile)
const manifest = { name: 'hello-gateway', version: '1.0.0', main: 'index.js' }
const folder = testdir(t, {
  package: { 'package.json': JSON.stringify(manifest), 'index.js': 'module.exports = "hello"\n' },
  project: { 'package.json': '{"name":"project","private":true}' },
})
await run('tar', ['-czf', join(folder, 'package.tgz'), '-C', folder, 'package'])
const archive = readFileSync(join(folder, 'package.tgz'))
const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`

const registry = await startOrigin(t, (req, res) => {
  const tarball = `${registry.url}/hello-gateway/-/hello-gateway-1.0.0.tgz`
  const versions = { '1.0.0': { ...manifest, dist: { tarball, integrity } } }
  if (req.url === '/hello-gateway') {
    res.writeHead(200, { 'Content-Type': 'application/json' })
    res.end(JSON.stringify({ name: manifest.name, 'dist-tags': { latest: '1.0.0' }, versions }))
  } else if (req.url?.endsWith('.tgz')) res.end(archive)
  else res.writeHead(404).end('{}')
})
const { key, host } = await startKeyGateway(t, registry.url)

t.test('npm installs from a registry on a virtual host, archives included', async t => {
  const settings = [`registry=http://${host}/`, `//${host}/:_authToken=${key}`, 'replace-registry-host=always']
  const project = join(folder, 'project')
  mkdirSync(join(folder, 'home'))
  writeFileSync(join(project, '.npmrc'), settings.join('\n'))
  const env = { PATH: process.env['PATH'], HOME: join(folder, 'home') }
  await run('npm', ['install', '--no-audit', '--no-fund', '--no-update-notifier', 'hello-gateway'], {
    cwd: project,
    env,
  })
  t.equal(readFileSync(join(project, 'node_modules/hello-gateway/index.js'), 'utf8'), 'module.exports = "hello"\n')
  t.strictSame(
    registry.seen.map(({ target }) => target),
    ['/hello-gateway', '/hello-gateway/-/hello-gateway-1.0.0.tgz'],
  )
  t.ok(registry.seen.every(({ headers }) => headers.via === '1.1 agent-gateway'))
  t.notOk(holdsKey(registry.seen, key))
})
