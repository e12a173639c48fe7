/**
 * Threat T16 of SECURITY.md: pages and scripts of an upstream never run in the origin of the console, not even where a browser
 * sends an agent's token in Authorization.
 */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { openChromium } from '../fixtures/chromium.ts'
import { startConsole } from '../fixtures/console.ts'
import { startOrigin } from '../fixtures/origin.ts'

const page = `<!doctype html><title>page</title><script>
  document.title = 'it runs'
  new BroadcastChannel('agent-gateway-console').postMessage({ asks: true })
  fetch('/hitl').then(() => fetch('/reached'))
</script>`
const origin = await startOrigin(t, (req, res) => {
  const isScript = req.url?.endsWith('.js') === true
  res.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
  res.setHeader('Service-Worker-Allowed', '/')
  res.end(isScript ? 'self.loaded = true' : page)
})
const bench = await startConsole(t, { origin, config: { Security: { AgentAuth: { FallbackToAuthorization: true } } } })
const agent = await bench.agent({ policyName: 'allow-all' })
const { key } = JSON.parse((await bench.manage('POST', `/agents/${agent.id}/keys`, { name: 'k' })).text)
t.beforeEach(() => {
  origin.seen.length = 0
})

/** A page of Chromium in which nothing is forbidden to load. */
async function openPage(t: Test) {
  const context = await (await openChromium()).newContext()
  t.teardown(() => context.close())
  return context.newPage()
}

t.test('a link with a key shows no page of an upstream, and nothing is sent', async t => {
  const browser = await openPage(t)
  const { port } = new URL(bench.url)
  const link = `http://x:${key}@127.0.0.1:${port}/proxy/${origin.url}/page.html`
  const answer = await browser.goto(link)
  t.strictSame([answer?.status(), answer?.headers()['gateway-error']], [403, 'browser_refused'])
  t.equal(origin.seen.length, 0)
})

t.test('nor is anything of an upstream loaded by a page of the gateway', async t => {
  const browser = await openPage(t)
  await browser.goto(`${bench.url}/open-api`)
  const target = `/proxy/${origin.url}`
  const statuses: number[] = []
  browser.on('response', answer => {
    if (answer.url().includes('/proxy/')) statuses.push(answer.status())
  })
  await browser.evaluate(`(async () => {
    const loads = ['script', 'img', 'iframe'].map(kind => {
      const element = document.createElement(kind)
      element.src = '${target}/' + kind + '.js'
      document.body.append(element)
      return new Promise(resolve => {
        element.onload = element.onerror = resolve
        document.addEventListener('securitypolicyviolation', resolve, { once: true })
      })
    })
    await Promise.all(loads)
    await navigator.serviceWorker.register('${target}/worker.js', { scope: '/' }).catch(() => {})
  })()`)
  t.ok(statuses.every(status => status === 403))
  t.equal(origin.seen.length, 0)
})

/** A proxy in front of the gateway that drops what browsers say of themselves, and adds the agent's token to all calls. */
async function startOldBrowserProxy(t: Test): Promise<string> {
  const server = createServer((req, res) => {
    const headers = { ...req.headers, authorization: `Bearer ${key}` }
    for (const name of Object.keys(headers))
      if (name.startsWith('sec-')) delete (headers as Record<string, unknown>)[name]
    const { port } = new URL(bench.url)
    const onward = request({ port, host: '127.0.0.1', method: req.method, path: req.url, headers }, answer => {
      res.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
      answer.pipe(res)
    })
    req.pipe(onward)
  }).listen(0, '127.0.0.1')
  t.teardown(() => void server.close())
  await new Promise(resolve => server.once('listening', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('a page of an upstream that is shown all the same runs no script and has no origin', async t => {
  const front = await startOldBrowserProxy(t)
  const browser = await openPage(t)
  const answer = await browser.goto(`${front}/proxy/${origin.url}/page.html`)
  t.strictSame([answer?.status(), answer?.headers()['content-security-policy']], [200, 'sandbox'])
  t.equal(await browser.title(), 'page')
  t.equal(await browser.evaluate('self.origin'), 'null')
  t.strictSame(
    origin.seen.map(({ target }) => target),
    ['/page.html'],
  )
})

t.test('a 401 under /proxy/ asks for no password, and one that comes all the same is taken', async t => {
  const url = `${bench.url}/proxy/${origin.url}/x`
  const refused = await fetch(url)
  t.equal(refused.status, 401)
  t.match(refused.headers.get('www-authenticate'), /^Bearer /)
  const headers = { Authorization: `Basic ${Buffer.from(`x:${key}`).toString('base64')}` }
  t.equal((await fetch(url, { headers })).status, 200)
})
