import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { holdsKey, startKeyGateway } from '../clients/fixtures/key-gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const run = promisify(execFile)
const python = '/usr/bin/python3'
const folder = testdir(t)
const wheel = 'hello_gateway-1.0-py3-none-any.whl'

// A wheel is an archive with three files that describe it.
const build = `
import sys, zipfile
info = "hello_gateway-1.0.dist-info"
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("hello_gateway.py", "greeting = 'hello'\\n")
    archive.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: hello-gateway\\nVersion: 1.0\\n")
    archive.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    archive.writestr(info + "/RECORD", "")
`
await run(python, ['-c', build, join(folder, wheel)])
const bytes = readFileSync(join(folder, wheel))

const index = await startOrigin(t, (req, res) => {
  if (req.url === '/simple/hello-gateway/') {
    res.writeHead(200, { 'Content-Type': 'text/html' }).end(`<a href="../../files/${wheel}">${wheel}</a>`)
  } else if (req.url === '/simple/hello-gateway') res.writeHead(301, { Location: '/simple/hello-gateway/' }).end()
  else if (req.url === `/files/${wheel}`) res.writeHead(200, { 'Content-Length': bytes.length }).end(bytes)
  else res.writeHead(404).end()
})
const { gateway, key, host, urlWithKey } = await startKeyGateway(t, index.url, {
  Security: { AgentAuth: { FallbackToAuthorization: true } },
})

async function install(indexUrl: string, target: string) {
  const quiet = ['--disable-pip-version-check', '--no-input', '--no-cache-dir', '--retries=0', '--no-deps', '--quiet']
  const trust = ['--trusted-host', host, '--trusted-host', `127.0.0.1:${gateway.port}`]
  const env = { PATH: process.env['PATH'], HOME: folder, PIP_CONFIG_FILE: '/dev/null' }
  await run(
    python,
    ['-m', 'pip', 'install', ...quiet, ...trust, '--index-url', indexUrl, '--target', target, 'hello-gateway'],
    { env },
  )
}

t.beforeEach(() => {
  index.seen.length = 0
})

t.test('pip installs from an index on a virtual host, with a key as the password', async t => {
  const target = join(folder, 'by-host')
  await install(`${urlWithKey}/simple/`, target)
  t.ok(existsSync(join(target, 'hello_gateway.py')))
  t.ok(index.seen.some(({ target }) => target === `/files/${wheel}`))
  t.notOk(holdsKey(index.seen, key))
})

t.test('pip installs through /proxy/http/host, which has no :// to damage', async t => {
  const target = join(folder, 'by-path')
  const indexUrl = `http://agent:${key}@127.0.0.1:${gateway.port}/proxy/${index.url.replace('://', '/')}/simple/`
  await install(indexUrl, target)
  t.ok(existsSync(join(target, 'hello_gateway.py')))
  t.notOk(holdsKey(index.seen, key))
})
