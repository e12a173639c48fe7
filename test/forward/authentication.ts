/** Clients of a forward proxy are asked for credentials with 407 (RFC 9110 section 15.5.8). Threats T40, T42, T71. */
import t from 'tap'
import { absolute, basic, startForward, valuesIn } from '../fixtures/forward.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const gateway = await startForward(t)

t.beforeEach(() => {
  origin.seen.length = 0
})

const unknown = `agw_${'x'.repeat(43)}`
const cases: Readonly<Record<string, string | undefined>> = {
  'no credential': undefined,
  'an unknown key': `Bearer ${unknown}`,
  'an unknown key as a password': basic('agent', unknown),
  'an empty credential': 'Bearer ',
  'Basic without a colon': `Basic ${Buffer.from('nothing').toString('base64')}`,
  'another scheme': 'Negotiate abcdef',
}

for (const [name, authorization] of Object.entries(cases)) {
  t.test(`${name}: 407 with both challenges, and the connection closes`, async t => {
    const client = await gateway.open(t)
    client.write(absolute(origin, { authorization }).replace('Connection: close\r\n', ''))
    const answer = await client.closed()
    t.match(answer, /^HTTP\/1\.1 407 Proxy authentication required: .*"code":"proxy_authentication_required"/s)
    const [first, second, ...more] = valuesIn(answer, 'Proxy-Authenticate')
    t.equal(first, 'Basic realm="agent-gateway", charset="UTF-8"')
    t.match(second, /^Bearer (?:error="invalid_\w+", )?error_description="/)
    t.strictSame(more, [])
    t.strictSame(valuesIn(answer, 'Connection'), ['close'])
    t.strictSame(valuesIn(answer, 'WWW-Authenticate'), [], '401 and its field would look like those of the upstream')
    t.strictSame(origin.seen, [])
  })
}

t.test('two credentials are 400, and the connection closes', async t => {
  const { token } = await gateway.agent()
  const client = await gateway.open(t)
  const fields = `Proxy-Authorization: Bearer ${token}\r\n`
  client.write(absolute(origin, { authorization: `Bearer ${token}`, fields }).replace('Connection: close\r\n', ''))
  t.match(await client.closed(), /^HTTP\/1\.1 400 .*"code":"invalid_request"/s)
  t.strictSame(origin.seen, [])
})

t.test('a token in another field is no credential here', async t => {
  const { token } = await gateway.agent()
  const fields = `Gateway-Authorization: Bearer ${token}\r\nAuthorization: Bearer ${token}\r\n`
  t.match(await gateway.exchange(t, absolute(origin, { fields })), /^HTTP\/1\.1 407 /)
  t.strictSame(origin.seen, [])
})

t.test('T42 a token beside the credential is 400, and never sent', async t => {
  const { token } = await gateway.agent()
  const other = await gateway.agent()
  for (const fields of [
    `Gateway-Authorization: Bearer ${token}\r\n`,
    'Gateway-Authorization: anything\r\n',
    `Authorization: Bearer ${token}\r\n`,
    `X-Api-Key: ${other.token}\r\n`,
  ]) {
    const answer = await gateway.exchange(t, absolute(origin, { authorization: `Bearer ${token}`, fields }))
    t.match(answer, /^HTTP\/1\.1 400 .*"code":"token_misplaced"/s, fields.slice(0, 30))
  }
  const inPath = absolute(origin, { authorization: `Bearer ${token}`, path: `/?t=${token}` })
  t.match(await gateway.exchange(t, inPath), /^HTTP\/1\.1 400 .*"code":"token_misplaced"/s)
  t.strictSame(origin.seen, [])
})

t.test('T42 a token field with a name of upstreams is theirs, unless it has a token', async t => {
  const config = { Security: { AgentAuth: { CustomHeaderName: 'X-Api-Key' } } }
  const named = await startForward(t, { config })
  const { token } = await named.agent()
  const other = await named.agent()
  const request = (fields: string) => absolute(origin, { authorization: `Bearer ${token}`, fields })
  t.match(await named.exchange(t, request('X-Api-Key: theirs\r\n')), /^HTTP\/1\.1 200 /)
  t.match(origin.seen[0]?.rawHeaders.join(), /X-Api-Key,theirs/)
  for (const misplaced of [token, `Bearer ${other.token}`]) {
    t.match(await named.exchange(t, request(`X-Api-Key: ${misplaced}\r\n`)), /^HTTP\/1\.1 400 .*"token_misplaced"/s)
  }
  t.equal(origin.seen.length, 1)
})

t.test('an agent that was revoked gets the reason, also on a connection that it has', async t => {
  const { id, token } = await gateway.agent()
  const client = await gateway.open(t)
  const bytes = absolute(origin, { authorization: `Bearer ${token}` }).replace('Connection: close\r\n', '')
  client.write(bytes)
  await client.until(/hello from upstream/)
  await gateway.manage('POST', `/agents/${id}/revoke`)
  client.write(bytes)
  t.match(await client.until(/"code"/), /HTTP\/1\.1 403 Agent revoked: /)
  t.equal(origin.seen.length, 1)
})

t.test('a request under way whose key is revoked gets 407', async t => {
  const slow = await startOrigin(t, () => {})
  const { id } = await gateway.agent()
  const { key, id: keyId } = JSON.parse((await gateway.manage('POST', `/agents/${id}/keys`, { name: 'short' })).text)
  const client = await gateway.open(t)
  client.write(absolute(slow, { authorization: `Bearer ${key}` }))
  await eventually(
    () => slow.seen.length,
    count => count === 1,
  )
  await gateway.manage('DELETE', `/keys/${keyId}`)
  t.match(await client.closed(), /^HTTP\/1\.1 407 /)
})
