/** T05: a path rule is not passed by another spelling of the path, and what passes is sent as it came. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const rules = [
  {
    name: 'no-admin',
    effect: 'Deny',
    conditions: [{ field: 'input.path', operator: 'pathMatches', value: '/admin/**' }],
  },
  { name: 'look', effect: 'Hitl', conditions: [{ field: 'input.path', operator: 'eq', value: '/payments' }] },
]
const gateway = await startGateway(t, { config: { Policies: [{ name: 'allow-all', default: 'Allow', rules }] } })
const { token } = await gateway.agent()
const origin = await startOrigin(t)

/** Status and code of the answer to a request with this path, byte for byte. */
async function call(path: string) {
  const raw = await openRaw(t, gateway.port)
  const field = `Gateway-Authorization: Bearer ${token}`
  raw.write(`GET /proxy/${origin.url}${path} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n${field}\r\n\r\n`)
  const answer = await raw.closed()
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(answer) ?? []
  return { status: Number(status), code: /^gateway-error: (\S+)/im.exec(answer)?.[1] }
}

t.test('another spelling of a denied path is denied', async t => {
  for (const path of [
    '/admin',
    '/%61dmin',
    '/admin;x',
    '//admin',
    '/%5cadmin',
    '/%2fadmin/x',
    '/;/admin',
    '/%2561dmin',
  ])
    t.match(await call(path), { status: 403, code: 'policy_denied' }, path)
  for (const path of ['/%70ayments', '/payments;x%2fy']) t.match(await call(path), { status: 202 }, path)
  t.strictSame(origin.seen, [])
})

t.test('a path that leads elsewhere on some servers is refused', async t => {
  for (const path of ['/x/..%2fadmin', '/..;/admin', '/x%5c..%5cadmin', '/x/%252e%252e/admin', '/x/../admin'])
    t.match(await call(path), { status: 400, code: 'invalid_target' }, path)
  t.strictSame(origin.seen, [])
})

t.test('a path with several readings that is allowed is sent byte for byte', async t => {
  const paths = ['/files/a%2Fb;c=1//d%5c%7e', '/%66iles;x?q=%61', '/a%20b']
  for (const path of paths) t.match(await call(path), { status: 200 }, path)
  t.strictSame(
    origin.seen.map(({ target }) => target),
    paths,
  )
})

t.test('explain shows the readings, and decides as the gateway does', async t => {
  const explain = async (path: string) => {
    const { text } = await gateway.manage('POST', '/policies/allow-all/explain', {
      request: { url: `${origin.url}${path}` },
    })
    return JSON.parse(text)
  }
  t.match(await explain('/%61dmin;x'), {
    result: { decision: 'Deny', rule: 'no-admin' },
    readings: ['/%61dmin;x', '/admin;x', '/admin'],
    rules: [{ value: 'unreadable', matches: true }, { value: 'false' }],
  })
  t.notOk('readings' in (await explain('/a%20b')))
  t.match(await explain('/..;/admin'), { status: 400, code: 'invalid_target' })
})
