/** Opaque tokens of an identity provider. Threats T14, T15 and T37 of SECURITY.md. */

import t from 'tap'
import { createExternal } from '../../src/tokens/external.ts'
import type { SubmitForm } from '../../src/tokens/introspection.ts'
import { createClock } from '../fixtures/clock.ts'
import { agent, agentRecord, authority, createProvider, discoveryUrl, externalSettings } from '../fixtures/provider.ts'

const endpoint = `${authority}/introspect`
const opaque = 'an-opaque-token-of-the-provider'
const robot = agentRecord({ id: '22222222-2222-4222-8222-222222222222', externalSubject: 'robot' })

/** A provider that gives `answers` by token; what is a function decides when it is asked. */
function open(answers: Record<string, unknown> = {}, more: object = {}) {
  const clock = createClock()
  const { documents, fetchDocument } = createProvider()
  documents[discoveryUrl] = { ...(documents[discoveryUrl] as object), introspection_endpoint: endpoint }
  const asked: { readonly url: string; readonly authorization: string; readonly token: string | null }[] = []
  const errors: unknown[] = []
  const submitForm: SubmitForm = async (url, { authorization, body }) => {
    const token = new URLSearchParams(body).get('token')
    asked.push({ url: url.href, authorization, token })
    const found = answers[token ?? ''] ?? { active: false }
    const answer = typeof found === 'function' ? await found() : found
    return Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer))
  }
  const Introspection = { Endpoint: undefined, ClientId: 'gate:way', ClientSecret: 'sé cret', ...more }
  const agents = [agent, robot]
  const external = createExternal({
    ...{ clock, fetchDocument, submitForm, settings: { ...externalSettings(), Introspection } },
    agent: id => agents.find(one => one.id === id),
    agentOfSubject: subject => agents.find(one => one.externalSubject === subject),
    onError: error => errors.push(error),
  })
  const verify = external!.verify
  const active = {
    active: true,
    token_type: 'Bearer',
    sub: 'user-1',
    aud: 'gateway',
    iss: authority,
    exp: clock.now() / 1_000 + 600,
  }
  return { verify, external: external!, answers, asked, clock, active, errors, documents }
}

t.test('a token is what the provider says, and the provider is asked as RFC 7662 says', async t => {
  const { verify, answers, asked, active, external } = open()
  answers[opaque] = active
  t.match(await verify(opaque), { sub: agent.id, external_sub: 'user-1' })
  const basic = `Basic ${Buffer.from('gate%3Away:s%C3%A9+cret').toString('base64')}`
  t.strictSame(asked, [{ url: endpoint, authorization: basic, token: opaque }])
  t.ok(await external.verifyFor(opaque, agent))
  t.notOk(await external.verifyFor(opaque, robot))
  t.equal(asked.length, 1)
})

t.test('a provider cannot say what the claims of a key say', async t => {
  const { verify, answers, active } = open()
  answers[opaque] = { ...active, key_id: 'x","agentId":"other', key_name: 'deploy', team: 'a' }
  const claims = await verify(opaque)
  t.match(claims, { sub: agent.id, team: 'a', key_id: undefined, key_name: undefined })
})

t.test('the configured address comes before the published one', async t => {
  const { verify, asked } = open({}, { Endpoint: 'https://idp.test/other' })
  t.equal(await verify(opaque), 'inactive')
  t.equal(asked[0]?.url, 'https://idp.test/other')
})

t.test('the published address is read again after a failure: the provider may have moved it', async t => {
  const { verify, answers, asked, active, documents } = open()
  const published = documents[discoveryUrl] as object
  documents[discoveryUrl] = { ...published, introspection_endpoint: undefined }
  t.equal(await verify(opaque), 'unverified')
  documents[discoveryUrl] = published
  answers[opaque] = () => Promise.reject(new TypeError('moved'))
  t.equal(await verify(opaque), 'unverified')
  documents[discoveryUrl] = { ...published, introspection_endpoint: `${authority}/moved` }
  answers[opaque] = active
  t.match(await verify(opaque), { sub: agent.id })
  t.strictSame(
    asked.map(({ url }) => url),
    [endpoint, `${authority}/moved`],
  )
})

t.test('a client that acts for itself is its own subject', async t => {
  const { verify, answers, active } = open()
  answers[opaque] = { ...active, sub: undefined, client_id: 'robot' }
  t.match(await verify(opaque), { sub: robot.id })
})

t.test('an answer that is not for this gateway, or is no access token, is refused', async t => {
  const { active, clock } = open()
  const now = clock.now() / 1_000
  const cases: readonly (readonly [object, string])[] = [
    [{ active: false }, 'inactive'],
    [{ ...active, aud: 'elsewhere' }, 'audience'],
    [{ ...active, aud: undefined }, 'audience'],
    [{ ...active, iss: 'https://other.test' }, 'issuer'],
    [{ ...active, token_type: 'DPoP' }, 'foreign'],
    [{ ...active, token_type: undefined }, 'foreign'],
    [{ ...active, cnf: { jkt: 'x' } }, 'foreign'],
    [{ ...active, typ: 'Refresh' }, 'foreign'],
    [{ ...active, token_use: 'id' }, 'foreign'],
    [{ ...active, nonce: 'an ID token' }, 'foreign'],
    [{ ...active, exp: now - 1 }, 'expired'],
    [{ ...active, exp: 'soon' }, 'claims'],
    [{ ...active, nbf: now + 600 }, 'not_yet_valid'],
    [{ ...active, nbf: '0' }, 'claims'],
    [{ ...active, sub: undefined }, 'claims'],
    [{ ...active, sub: 'nobody' }, 'unknown_agent'],
  ]
  for (const [answer, problem] of cases) t.equal(await open({ [opaque]: answer }).verify(opaque), problem)
})

t.test('without a clear answer no token is accepted', async t => {
  const broken = () => Promise.reject(new TypeError('down'))
  const { active } = open()
  const odd = JSON.stringify(active)
  for (const answer of [broken, 'no JSON', '[]', {}, { active: 'true' }, odd.replace('{', '{"active":false,'), null]) {
    const { verify, errors } = open({ [opaque]: answer === null ? () => null : answer })
    t.equal(await verify(opaque), 'unverified')
    t.equal(errors.length, 1)
  }
})

t.test('an answer is kept for a minute at most, and renewed before while it is used', async t => {
  const { verify, answers, asked, active, clock } = open()
  answers[opaque] = active
  await verify(opaque)
  clock.advance(44_000)
  t.type(verify(opaque), 'object', 'at once')
  t.equal(asked.length, 1)
  clock.advance(1_000)
  t.match(verify(opaque), { sub: agent.id })
  t.match(verify(opaque), { sub: agent.id })
  await new Promise(setImmediate)
  t.equal(asked.length, 2, 'renewed once, and nobody waited')
  answers[opaque] = { active: false }
  clock.advance(59_999)
  t.match(verify(opaque), { sub: agent.id })
  await new Promise(setImmediate)
  t.equal(verify(opaque), 'inactive', 'as soon as the provider has said so')
})

t.test('a token that was not used is asked for again after a minute, also when the provider is down', async t => {
  const { verify, answers, asked, active, clock } = open()
  answers[opaque] = active
  await verify(opaque)
  clock.advance(60_000)
  answers[opaque] = () => Promise.reject(new TypeError('down'))
  t.equal(await verify(opaque), 'unverified')
  t.equal(asked.length, 2)
  t.equal(await verify(opaque), 'unverified')
})

t.test('a token ends at its own expiry', async t => {
  const { verify, answers, active, clock } = open()
  answers[opaque] = { ...active, exp: clock.now() / 1_000 + 10 }
  await verify(opaque)
  clock.advance(10_000)
  t.equal(verify(opaque), 'expired')
})

t.test('all who ask at once share one look-up, and a refusal is kept for some seconds', async t => {
  const { verify, asked, clock } = open()
  t.strictSame(await Promise.all([verify(opaque), verify(opaque)]), ['inactive', 'inactive'])
  t.equal(asked.length, 1)
  t.equal(verify(opaque), 'inactive')
  clock.advance(5_000)
  await verify(opaque)
  t.equal(asked.length, 2)
})

t.test('what cannot be a token is not asked for', async t => {
  const { verify, asked } = open()
  for (const text of ['', 'short', 'a token with spaces', 'x'.repeat(2_049), 'ümlaut-ümlaut-ümlaut']) {
    t.equal(await verify(text), 'malformed', text)
  }
  t.strictSame(asked, [])
})

t.test('one client that makes up tokens does not keep others waiting, nor known agents', async t => {
  const { verify, answers, active, asked, clock } = open()
  answers[opaque] = active
  await verify(opaque, { remoteAddress: '10.0.0.1' })
  const hanging = Promise.withResolvers<object>()
  const flood = Array.from({ length: 100 }, (_, i) => `made-up-token-number-${i}`)
  for (const token of flood) answers[token] = () => hanging.promise
  const attacker = { remoteAddress: '10.0.0.66' }
  const outcomes = flood.map(token => verify(token, attacker))
  await new Promise(setImmediate)
  t.equal(asked.length, 1 + 4, 'four at once')
  const refused = await Promise.all(outcomes.slice(20))
  t.ok(
    refused.every(outcome => outcome === 'unverified'),
    'what does not fit is refused at once',
  )
  answers['token-of-another-client'] = { ...active, sub: 'robot' }
  t.match(await verify('token-of-another-client', { remoteAddress: '10.0.0.2' }), { sub: robot.id })
  clock.advance(60_000)
  t.match(await verify(opaque, attacker), { sub: agent.id }, 'a known token has the turn of its agent')
  hanging.resolve({ active: false })
  await Promise.all(outcomes)
})

t.test('without a client at the provider, opaque tokens are refused', async t => {
  const { verify, asked } = open({}, { ClientId: undefined })
  t.equal(await verify(opaque), 'malformed')
  t.strictSame(asked, [])
})
