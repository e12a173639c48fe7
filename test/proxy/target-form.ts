/** The target form for clients that damage `://`. Threats T05 and T62 of SECURITY.md. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const third = await startOrigin(t)
const origin = await startOrigin(t, (req, res) => {
  const [, to] = (req.url ?? '').split('?to=')
  if (to === undefined) res.end(`upstream ${req.url}`)
  else res.writeHead(302, { Location: decodeURIComponent(to), 'Set-Cookie': 'a=1; Path=/v1' }).end()
})
const gateway = await startGateway(t)
const { token } = await gateway.agent()
const formOf = (url: string) => url.replace('://', '/')
const get = (target: string) => gateway.proxy(token, target)

t.test('/proxy/https/host is /proxy/https://host', async t => {
  const answer = await get(`${formOf(origin.url)}/a/b?c=%2F`)
  t.equal(await answer.text(), 'upstream /a/b?c=%2F')
  t.match(await gateway.exchanges(1), [{ origin: origin.url, path: '/a/b' }])
})

t.test('the colon of the port may be percent-encoded, as pip does it, and nothing else', async t => {
  const encoded = formOf(origin.url).replace(/:(\d+)$/, '%3A$1')
  t.equal(await (await get(`${encoded}/a`)).text(), 'upstream /a')
  t.equal(await (await get(`${encoded}?b`)).text(), 'upstream /?b')
  for (const bad of [`${encoded}%2Fa`, encoded.replace('%3A', '%253A'), encoded.replace('127', '%3127')]) {
    t.equal((await get(bad)).status, 400, bad)
  }
})

t.test('redirects and cookies keep the form', async t => {
  const found = await get(`${formOf(origin.url)}/a?to=${encodeURIComponent(`${third.url}/there`)}`)
  t.equal(found.headers.get('location'), `/proxy/${formOf(third.url)}/there`)
  t.equal(found.headers.get('set-cookie'), `a=1; Path=/proxy/${formOf(origin.url)}/v1`)
  const followed = await gateway.proxy(token, `${formOf(origin.url)}/a?to=/b`, { redirect: 'follow' })
  t.equal(await followed.text(), 'upstream /b')
})

t.test('what is no host in this form is refused', async t => {
  origin.seen.length = 0
  const bad = [
    'https',
    'https/',
    'https//a.example/',
    'https/http://a.example/',
    'http/a@b.example/',
    'https/a.example./',
  ]
  for (const target of bad) {
    const answer = await get(target)
    t.equal(answer.status, 400, target)
    t.equal(answer.headers.get('gateway-error'), 'invalid_target')
  }
  const merged = await get('https:/a.example/')
  t.match(await merged.text(), /Call \/proxy\/https\/host\/path/)
  t.strictSame(origin.seen, [])
})
