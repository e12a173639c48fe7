import t from 'tap'
import { call } from '../fixtures/call.ts'
import { forge, hmac } from '../fixtures/forge.ts'
import { eventually, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { issuance, ourHeader, signingSecret } from '../fixtures/tokens.ts'

const origin = await startOrigin(t)
const settings = { Security: { AgentAuth: { TokenIssuance: { Secret: signingSecret } } } }
const gateway = await startGateway(t, { config: settings })
const { id, token } = await gateway.agent()

/** Header fields, flat, of a request to `path`; the answer must be the specified 401, and says why in the challenge. */
async function challengeOf(fields: readonly string[], { port }: TestGateway = gateway, path = `/proxy/${origin.url}/`) {
  const { status, headers, text } = await call({ port, path, headers: ['Host', 'gateway', ...fields] })
  if (status !== 401 || text !== 'Missing or invalid authentication') return `${status} ${text}`
  return headers['www-authenticate']
}

const invalid = (text: string, field = 'Gateway-Authorization') =>
  `Bearer error="invalid_token", error_description="The token in ${field} ${text}"`

/** A token that a stranger makes, who has not got the key. */
const forged = (sub: string) => forge(ourHeader, { sub, iss: 'agent-gateway' }, hmac('no key of the gateway at all'))

t.test('without a token, or with it in another field, the challenge says where it belongs', async t => {
  const where = 'Bearer error_description="Send the token as Gateway-Authorization: Bearer <token>"'
  t.equal(await challengeOf([]), where)
  t.equal(await challengeOf(['Authorization', `Bearer ${token}`]), where)
  const once =
    'Bearer error="invalid_request", error_description="Send one token, as Gateway-Authorization: Bearer <token>"'
  t.equal(await challengeOf(['Gateway-Authorization', token]), once)
  const two = ['Gateway-Authorization', `Bearer ${token}`, 'Gateway-Authorization', `Bearer ${token}x`]
  t.equal(await challengeOf(two), once)
})

t.test('the management API names its own field', async t => {
  const path = '/agents'
  const where = 'Bearer error_description="Send the token as Authorization: Bearer <token>"'
  t.equal(await challengeOf(['Gateway-Authorization', `Bearer ${gateway.adminToken}`], gateway, path), where)
  const challenge = await challengeOf(['Authorization', 'Bearer a.b.c'], gateway, path)
  t.equal(challenge, invalid('is not a JSON Web Token', 'Authorization'))
})

t.test('the challenge names the field that the token was found in', async t => {
  const config = { Security: { AgentAuth: { FallbackToAuthorization: true, CustomHeaderName: 'X-Agent' } } }
  const other = await startGateway(t, { config })
  const malformed = 'is not a JSON Web Token'
  t.equal(await challengeOf(['Authorization', 'Bearer sk-123'], other), invalid(malformed, 'Authorization'))
  t.equal(await challengeOf(['X-Agent', 'Bearer sk-123'], other), invalid(malformed, 'X-Agent'))
})

t.test('a stranger cannot distinguish an agent that exists from one that does not', async t => {
  const unknown = '00000000-0000-4000-8000-000000000000'
  const tell = (sub: string) => challengeOf(['Gateway-Authorization', `Bearer ${forged(sub)}`])
  t.equal(await tell(id), invalid('is signed with a key that is not known here'))
  t.equal(await tell(unknown), await tell(id))
})

t.test('a token gets the reason: its agent is gone, it is for others, or it has expired', async t => {
  const tell = (text: string) => challengeOf(['Gateway-Authorization', `Bearer ${text}`])
  const iat = Math.floor(Date.now() / 1_000) - 600
  const claims = { sub: id, iss: issuance.Issuer, aud: issuance.Audience, iat, exp: iat + 900 }
  const made = (changed: object) => forge(ourHeader, { ...claims, ...changed }, hmac(signingSecret))
  t.equal(await tell(made({ aud: 'elsewhere' })), invalid('is for another audience'))
  const gone = await gateway.agent()
  await gateway.manage('DELETE', `/agents/${gone.id}`)
  t.equal(await tell(gone.token), invalid('is for an agent that is not registered here'))
  t.equal(await tell(made({ exp: iat + 500 })), invalid('has expired'))
  const line = () => gateway.log.find(({ cause }) => cause === 'expired')
  t.match(await eventually(line, found => found !== undefined), { status: 401, refusal: 'unauthenticated' })
  t.strictSame(origin.seen, [])
})
