/** Threats T14, T15, T37 of SECURITY.md. */

import t from 'tap'
import { createExternal } from '../../src/tokens/external.ts'
import { createClock } from '../fixtures/clock.ts'
import {
  agent,
  agentRecord,
  authority,
  createProvider,
  discoveryUrl,
  externalSettings,
  jwk,
  keysUrl,
  openExternal,
  openPair,
  other,
  rsa,
  strangerRsa,
} from '../fixtures/provider.ts'

const minute = 60_000
const hour = 60 * minute

t.test('without a provider there is no external identity, and nothing else is looked at', async t => {
  const settings = { ...externalSettings({ Authority: 'nonsense' }), Provider: undefined }
  const ask = () => Promise.reject()
  const parts = { clock: createClock(), fetchDocument: ask, submitForm: ask, agent: () => undefined }
  t.equal(createExternal({ ...parts, agentOfSubject: () => undefined, settings }), undefined)
})

t.test('every switch that weakens the check is warned of', async t => {
  const { fetchDocument } = createProvider()
  t.strictSame(openExternal(fetchDocument).warnings, [])
  const weak = { Authority: 'http://idp.test', RequireHttpsMetadata: false, ValidateIssuer: false } as const
  const { warnings } = openExternal(fetchDocument, { ...weak, ValidateAudience: false })
  t.match(warnings, [/plain http/, /ValidateIssuer/, /ValidateAudience/])
})

t.test('without ValidateAudience a token for another audience is accepted', async t => {
  const { verify, token } = openPair({ ValidateAudience: false, Audience: undefined })
  t.ok(await verify(token({ aud: 'other' })))
  t.equal(await verify(token({ iss: 'other' })), undefined)
})

t.test(
  'an authority with a slash at the end is the same issuer, and tokens must name it as it names itself',
  async t => {
    const { provider, token, clock } = openPair()
    const { verify } = openExternal(provider.fetchDocument, { Authority: `${authority}/` })
    t.ok(await verify(token()))
    provider.documents[discoveryUrl] = { issuer: `${authority}/`, jwks_uri: keysUrl }
    const slashed = openExternal(provider.fetchDocument)
    t.equal(await slashed.verify(token()), undefined)
    t.ok(await slashed.verify(token({ iss: `${authority}/` })))
    t.equal(clock.steady(), 0)
  },
)

t.test('a jwks_uri over plain http is refused unless plain http is allowed', async t => {
  const { provider, verify, token } = openPair()
  const plain = 'http://idp.test/keys'
  provider.documents[discoveryUrl] = { issuer: authority, jwks_uri: plain }
  provider.documents[plain] = provider.documents[keysUrl]
  t.equal(await verify(token()), undefined)
  t.ok(await openExternal(provider.fetchDocument, { RequireHttpsMetadata: false }).verify(token()))
})

t.test('the binding is looked up at each use, so that a change counts at once', async t => {
  const agents = [agentRecord({ externalSubject: 'user-1' })]
  const { provider, token } = openPair()
  const { verify } = openExternal(provider.fetchDocument, {}, agents)
  const sent = token()
  t.ok(await verify(sent))
  agents[0] = agentRecord({ externalSubject: 'user-2' })
  t.equal(verify(sent), undefined)
})

t.test('a token that names an agent is that agent or nobody, whatever its subject is bound to', async t => {
  const { verify, token } = openPair()
  t.match(await verify(token({ agent_id: other.id })), { sub: other.id })
  t.equal(await verify(token({ agent_id: '22222222-2222-4222-8222-222222222222' })), undefined)
  t.match(await verify(token({ agent_id: 7 })), { sub: agent.id }, 'what is no text names nobody')
})

t.test('an agent without external subject is not bound by a token without one', async t => {
  const { verifyFor, token } = openPair()
  for (const sub of [undefined, null, '', 'null']) t.equal(await verifyFor(token({ sub }), other), false)
})

t.test(
  'keys are asked for again after five minutes, and the last good ones serve for a day when that fails',
  async t => {
    const { provider, verify, token, clock, now, errors } = openPair()
    const fresh = () => token({ exp: now + 100 * 3_600, jti: `${clock.now()}` })
    t.ok(await verify(fresh()))
    clock.advance(5 * minute - 1)
    t.ok(await verify(fresh()))
    t.equal(provider.asked.length, 2)
    clock.advance(1)
    t.ok(await verify(fresh()))
    t.equal(provider.asked.length, 3, 'only the keys')
    const { [keysUrl]: keys, ...others } = provider.documents
    delete provider.documents[keysUrl]
    clock.advance(24 * hour - 1)
    t.ok(await verify(fresh()))
    t.equal(errors.length, 1)
    clock.advance(1)
    t.equal(await verify(fresh()), undefined)
    Object.assign(provider.documents, others, { [keysUrl]: keys })
    clock.advance(30_000)
    t.ok(await verify(fresh()), 'back as soon as it answers again')
  },
)

t.test('a key taken away by the provider is no longer accepted after the next fetch', async t => {
  const { provider, verify, token, clock, now } = openPair()
  t.ok(await verify(token({ exp: now + 3_600 })))
  provider.documents[keysUrl] = { keys: [jwk(strangerRsa.publicKey, 'new', 'RS256')] }
  clock.advance(5 * minute)
  t.equal(await verify(token({ exp: now + 3_600, jti: 'other' })), undefined)
})

t.test('nor is a token that was verified with it before', async t => {
  const { provider, verify, token, clock, now, errors } = openPair()
  const sent = token({ exp: now + 100 * 3_600 })
  t.ok(await verify(sent))
  clock.advance(5 * minute)
  t.ok(await verify(sent), 'the keys are the same')
  t.notOk(verify(sent) instanceof Promise, 'and nothing is verified again')
  provider.documents[keysUrl] = { keys: [jwk(strangerRsa.publicKey, 'new', 'RS256')] }
  clock.advance(5 * minute - 1)
  t.ok(verify(sent))
  clock.advance(1)
  t.equal(await verify(sent), undefined)
  t.equal(await verify(sent), undefined)
  t.strictSame(errors, [])
})

t.test('while the provider cannot be reached nobody waits for it with every token', async t => {
  const { provider, verify, token, clock, now } = openPair()
  const sent = token({ exp: now + 100 * 3_600 })
  t.ok(await verify(sent))
  delete provider.documents[keysUrl]
  clock.advance(5 * minute)
  t.ok(await verify(sent))
  clock.advance(minute)
  t.notOk(verify(sent) instanceof Promise)
})

t.test('all who come while the keys are fetched share one fetch', async t => {
  const { provider, verify, token } = openPair()
  const sent = Array.from({ length: 50 }, (_, i) => verify(token({ jti: `${i}` })))
  for (const claims of await Promise.all(sent)) t.ok(claims)
  t.equal(provider.asked.length, 2)
})

t.test('documents that are not what they should be let nobody in', async t => {
  const keys = [jwk(rsa.publicKey, 'rsa', 'RS256')]
  for (const [url, document] of [
    [discoveryUrl, null],
    [discoveryUrl, []],
    [discoveryUrl, { issuer: authority }],
    [discoveryUrl, { issuer: authority, jwks_uri: 'not a url' }],
    [discoveryUrl, { issuer: authority, jwks_uri: 'file:///etc/passwd' }],
    [keysUrl, { keys: 'x' }],
    [keysUrl, keys],
    [keysUrl, { keys: [{ kty: 'oct', kid: 'rsa', k: 'AAAA', alg: 'RS256' }] }],
  ] as const) {
    const { provider, verify, token } = openPair()
    provider.documents[url] = document
    t.equal(await verify(token()), undefined, JSON.stringify(document))
  }
})

t.test('a token ends at its time, also when it was verified before', async t => {
  const { verify, token, clock } = openPair()
  const sent = token()
  t.ok(await verify(sent))
  clock.advance(300_000)
  t.equal(verify(sent), undefined)
})
