/** Threats T16, T44 of SECURITY.md. */
import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

t.test('the specification is served as it is', async t => {
  const { call } = control
  const { status, text, headers } = await call('GET', '/open-api/gateway/specifications.json')
  t.equal(status, 200)
  t.equal(text, readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
  t.match(headers.get('content-type'), 'application/json')
})

t.test('the page runs on files of the gateway alone, under a strict policy', async t => {
  const { call, url } = control
  const { status, text, headers } = await call('GET', '/open-api')
  t.equal(status, 200)
  t.match(headers.get('content-type'), 'text/html')
  t.match(headers.get('x-frame-options'), 'DENY')
  t.match(headers.get('x-content-type-options'), 'nosniff')
  const policy = headers.get('content-security-policy') ?? ''
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"])
    t.ok(policy.includes(part), part)
  t.notMatch(policy, 'unsafe')
  t.notMatch(text, /<script>|<style|style=|on\w+=|https?:/)
  const links = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => new URL(link!, `${url}/open-api`))
  t.equal(links.length, 4)
  for (const link of links) {
    const file = await call('GET', link.pathname)
    t.equal(file.status, 200, link.pathname)
    t.match(file.headers.get('x-content-type-options'), 'nosniff')
    t.ok(file.text.length > 50)
  }
})

t.test('the page asks nobody else to look at the document', async t => {
  const { call } = control
  t.match((await call('GET', '/open-api/assets/initializer.js')).text, "validatorUrl: 'none'")
})

t.test('Try it out calls /proxy with the URL as it was typed', async t => {
  const { text } = await control.call('GET', '/open-api/assets/initializer.js')
  type Settings = { requestInterceptor(request: { url: string }): { url: string } }
  const settings: Settings[] = []
  runInNewContext(text, { SwaggerUIBundle: (given: Settings) => settings.push(given) })
  const sent = (url: string) => settings[0]!.requestInterceptor({ url }).url
  for (const url of ['https://api.example/a%2Fb?x=1&y=%20', 'http://[::1]:8080/', 'HTTPS://a.example/proxy/x']) {
    t.equal(sent(`https://gateway.example/proxy/${encodeURIComponent(url)}`), `https://gateway.example/proxy/${url}`)
  }
  for (const path of ['/agents/a%2Fb', '/open-api/gateway/specifications.json', '/policies/proxy%2Fx']) {
    t.equal(sent(`https://gateway.example${path}`), `https://gateway.example${path}`)
  }
})

t.test('no other file is served', async t => {
  const { call } = control
  for (const file of ['package.json', '..%2fpackage.json', 'swagger-ui.js.map', '__proto__', 'index.html'])
    t.match((await call('GET', `/open-api/assets/${file}`)).status, 404, file)
  t.match(await call('HEAD', '/open-api/assets/swagger-ui.css'), { status: 200, text: '' })
})
