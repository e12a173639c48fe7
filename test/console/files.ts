/** Threats T16 and T44 of SECURITY.md: what the console is served with. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { openChromium } from '../fixtures/chromium.ts'
import { buildConsole } from '../fixtures/console.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const folder = buildConsole()
const { url, port } = await startGateway(t, { consoleFolder: folder })
const get = (path: string, init?: RequestInit) => fetch(url + path, { redirect: 'manual', ...init })

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; manifest-src 'self'; require-trusted-types-for 'script'; " +
  "worker-src 'none'; trusted-types 'none'"

t.test('the page is served to everybody, under the strictest policy, and asked for again each time', async t => {
  const answer = await get('/console/')
  t.equal(answer.status, 200)
  t.match(Object.fromEntries(answer.headers), {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy,
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'x-frame-options': 'DENY',
  })
  t.equal(answer.headers.get('set-cookie'), null)
  const text = await answer.text()
  t.equal(text, readFileSync(join(folder, 'index.html'), 'utf8'))
  t.notMatch(text, /<script(?![^>]* src="\.\/assets\/)|<style|\son\w+=|\/\//, 'no inline code, nothing from elsewhere')
})

t.test('files are named by their contents, kept for good, and sent smaller to those who can read that', async t => {
  const names = readdirSync(join(folder, 'assets'))
  t.ok(names.some(name => name.endsWith('.js')))
  for (const name of names) {
    t.match(name, /-[\w-]{8}\.\w+$/)
    const answer = await get(`/console/assets/${name}`)
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    t.equal(answer.headers.get('vary'), 'Accept-Encoding')
    const plain = readFileSync(join(folder, 'assets', name))
    t.strictSame(Buffer.from(await answer.arrayBuffer()), plain)
    for (const accepted of ['gzip;q=0', 'identity', 'gzipped']) {
      t.strictSame(await raw(name, accepted), { encoding: undefined, bytes: plain }, accepted)
    }
    for (const accepted of ['gzip', 'br, GZIP;q=0.5']) {
      const { encoding, bytes } = await raw(name, accepted)
      t.strictSame([encoding, gunzipSync(bytes)], ['gzip', plain], accepted)
    }
  }
})

async function raw(name: string, accepted: string) {
  const headers = { 'Accept-Encoding': accepted }
  const sent = request({ port, path: `/console/assets/${name}`, headers, agent: false }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { encoding: answer.headers['content-encoding'], bytes: await buffer(answer) }
}

t.test('the first page is no more than 90 KB, compressed, and all pages but the editor of policies 120 KB', async t => {
  const sizeOf = async (names: readonly string[]) => {
    const sizes = names.map(async name =>
      Number((await get(`/console/assets/${name}`, { method: 'HEAD' })).headers.get('content-length')),
    )
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }
  const page = await (await get('/console/')).text()
  const first = [...page.matchAll(/"\.\/assets\/([^"]+\.(?:js|css))"/g)].map(([, name]) => name!)
  t.ok(first.length > 1)
  const all = readdirSync(join(folder, 'assets')).filter(name => /^(?!editor-).*\.(js|css)$/.test(name))
  const [one, whole] = [await sizeOf(first), await sizeOf(all)]
  t.ok(one > 0 && one <= 90 * 1_024, `${one} bytes`)
  t.ok(whole > one && whole <= 120 * 1_024, `${whole} bytes`)
})

t.test('there is nothing else, and nothing to write', async t => {
  for (const path of [
    '/console/index.html',
    '/console/assets/',
    '/console/assets/nothing.js',
    '/console/x',
    '/console//',
  ]) {
    t.equal((await get(path)).status, 404, path)
  }
  for (const path of ['/console/assets/..%2findex.html', '/console/assets/%2e%2e%2f%2e%2e%2fpackage.json']) {
    t.equal((await get(path)).status, 404, path)
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    const answer = await get('/console/', { method })
    t.strictSame([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD'])
  }
  const head = await get('/console/', { method: 'HEAD' })
  t.strictSame([head.status, await head.text()], [200, ''])
  const root = await get('/console')
  t.strictSame([root.status, root.headers.get('location')], [308, 'console/'])
})

t.test('a gateway whose console was not built says so', async t => {
  const gateway = await startGateway(t, { consoleFolder: testdir(t, {}) })
  const answer = await fetch(`${gateway.url}/console/`)
  t.equal(answer.status, 404)
  t.match(await answer.json(), { code: 'not_found', detail: /npm run build:console/ })
  t.equal((await fetch(`${gateway.url}/console/assets/index.js`)).status, 404)
})

t.test('the console can be installed: the browser takes its manifest and its icons', async t => {
  const context = await (await openChromium()).newContext()
  t.teardown(() => context.close())
  const page = await context.newPage()
  const violations: string[] = []
  page.on('console', message => violations.push(message.text()))
  await page.goto(`${url}/console/`)
  const session = await context.newCDPSession(page)
  const { manifest, errors } = await session.send('Page.getAppManifest')
  t.strictSame(errors, [])
  t.match(manifest, { name: 'Agent Gateway', startUrl: `${url}/console/`, scope: `${url}/console/` })
  const { installabilityErrors } = await session.send('Page.getInstallabilityErrors')
  t.strictSame(installabilityErrors, [])
  t.strictSame(violations, [])
})
