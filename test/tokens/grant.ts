/** Threat T12 of SECURITY.md. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { isRefusal, type Refusal } from '../../src/base/refusals.ts'
import type { AgentRecord } from '../../src/storage/store.ts'
import { createConsoleSignIn } from '../../src/tokens/console.ts'
import { createGrant, type GrantParts } from '../../src/tokens/grant.ts'
import type { TokenReply } from '../../src/tokens/issue.ts'
import { createThrottle } from '../../src/tokens/throttle.ts'
import { agentRecord } from '../fixtures/provider.ts'
import { openInternal } from '../fixtures/tokens.ts'

const nobody = '00000000-0000-4000-8000-000000000000'
const secret = 'correct horse battery staple'
const peer = '192.0.2.1'
const unauthorized = { refusal: 'unauthenticated', status: 401, detail: /^The credentials are wrong, / }

async function openGrant(parts: Partial<GrantParts> = {}) {
  const { issue, verify, clock, keys } = await openInternal()
  const codes = { keep: async () => {}, take: async () => undefined }
  const agents = new Map<string, AgentRecord>()
  const bad: string[] = []
  const hashed: string[] = []
  const grant = createGrant({
    agent: id => agents.get(id),
    trustOf: () => 0.5,
    async verifySecret(id, text) {
      hashed.push(id)
      return agents.has(id) && text === secret
    },
    verifyExternal: undefined,
    issue,
    console: createConsoleSignIn({ clock, codes, keys, issue, trustOf: () => 0.5 }),
    perAgent: createThrottle(5, clock),
    perAddress: createThrottle(20, clock),
    onBadCredential: id => bad.push(id),
    ...parts,
  })
  const agent = (fields: Partial<AgentRecord> = {}) => {
    const made = agentRecord({ id: randomUUID(), ...fields })
    agents.set(made.id, made)
    return made
  }
  return { grant, agent, agents, verify, clock, bad, hashed }
}

function granted(answer: TokenReply | Refusal): TokenReply {
  if (isRefusal(answer)) throw new TypeError(answer.detail)
  return answer
}

t.test('an agent with its secret gets a token for itself', async t => {
  const { grant, agent, verify } = await openGrant()
  const { id } = agent({ name: 'Crawler' })
  const reply = granted(await grant({ agentId: id, clientSecret: secret }, peer))
  t.match(reply, { tokenType: 'Bearer', expiresAt: '2026-01-05T10:15:00.000Z' })
  t.match(await verify(reply.token), { sub: id, name: 'Crawler', trust_score: 0.5 })
})

t.test('an id in upper case is the same agent', async t => {
  const { grant, agent, verify } = await openGrant()
  const { id } = agent()
  const reply = granted(await grant({ agentId: id.toUpperCase(), clientSecret: secret }, peer))
  t.equal((await verify(reply.token))?.sub, id)
})

t.test('unknown, inactive, quarantined, revoked and wrong secret get the very same answer', async t => {
  const { grant, agent } = await openGrant()
  const answers = [
    await grant({ agentId: nobody, clientSecret: secret }, peer),
    await grant({ agentId: agent().id, clientSecret: 'wrong' }, peer),
  ]
  for (const status of ['Inactive', 'Quarantined', 'Revoked'] as const) {
    answers.push(await grant({ agentId: agent({ status }).id, clientSecret: secret }, peer))
  }
  t.match(answers[0], unauthorized)
  for (const answer of answers) t.strictSame(answer, answers[0])
})

t.test('requests that hold no usable credential are unauthorized', async t => {
  const { grant, agent } = await openGrant()
  const { id } = agent()
  const requests = [
    {},
    { agentId: id },
    { agentId: 'not-a-uuid', clientSecret: secret },
    { agentId: `${id} `, clientSecret: secret },
    { agentId: id, clientSecret: '' },
    { agentId: id, clientSecret: `${secret}\0` },
    { agentId: id, clientSecret: 'x'.repeat(1_000_000) },
    { agentId: id, externalToken: 'a.b.c' },
  ]
  for (const [index, request] of requests.entries()) t.match(await grant(request, `10.0.0.${index}`), unauthorized)
})

t.test('an unknown agent is hashed for like a known one', async t => {
  const { grant, hashed } = await openGrant()
  await grant({ agentId: nobody, clientSecret: 'x' }, peer)
  t.strictSame(hashed, [nobody])
})

t.test('the sixth failure of an agent from one address is refused before anything is hashed', async t => {
  const { grant, agent, hashed, clock, bad } = await openGrant()
  const { id } = agent()
  for (let i = 0; i < 5; i++) t.match(await grant({ agentId: id, clientSecret: 'wrong' }, peer), unauthorized)
  const refused = await grant({ agentId: id.toUpperCase(), clientSecret: secret }, peer)
  t.match(refused, { refusal: 'too_many_logins', status: 429, headers: ['Retry-After', '60'] })
  t.equal(hashed.length, 5)
  t.strictSame(bad, Array(5).fill(id))
  clock.advance(60_000)
  t.notOk(isRefusal(await grant({ agentId: id, clientSecret: secret }, peer)))
})

t.test('who guesses slows its own address and /64, and does not lock out the agent', async t => {
  const { grant, agent } = await openGrant()
  const { id } = agent()
  for (let i = 0; i < 5; i++) {
    t.match(await grant({ agentId: id, clientSecret: 'wrong' }, `2001:db8:0:1::${i}`), unauthorized)
  }
  const guesser = await grant({ agentId: id, clientSecret: secret }, '2001:db8:0:1:ffff::1')
  t.match(guesser, { refusal: 'too_many_logins' }, 'another address of the same /64')
  t.notOk(isRefusal(await grant({ agentId: id, clientSecret: secret }, '2001:db8:0:2::1')))
  t.notOk(isRefusal(await grant({ agentId: id, clientSecret: secret }, '192.0.2.9')))
})

t.test('an address that fails twenty times in a minute is refused for every agent', async t => {
  const { grant, agent } = await openGrant()
  const { id } = agent()
  for (let i = 0; i < 20; i++) {
    const agentId = `00000000-0000-4000-8000-0000000000${10 + i}`
    t.match(await grant({ agentId, clientSecret: 'x' }, peer), unauthorized)
  }
  t.match(await grant({ agentId: id, clientSecret: secret }, peer), { refusal: 'too_many_logins' })
  t.notOk(isRefusal(await grant({ agentId: id, clientSecret: secret }, '192.0.2.2')))
})

t.test('malformed ids count for the address, which stops them too', async t => {
  const { grant } = await openGrant()
  for (let i = 0; i < 20; i++) t.match(await grant({ agentId: 'x', clientSecret: 'x' }, peer), unauthorized)
  t.match(await grant({ agentId: 'x', clientSecret: 'x' }, peer), { refusal: 'too_many_logins' })
})

t.test('a hundred wrong secrets at the same moment are no more than five guesses', async t => {
  const { grant, agent, hashed } = await openGrant()
  const { id } = agent()
  const burst = Array.from({ length: 100 }, (_, i) => grant({ agentId: id, clientSecret: `guess ${i}` }, peer))
  const answers = await Promise.all(burst)
  t.equal(hashed.length, 5)
  t.equal(answers.filter(answer => isRefusal(answer) && answer.status === 429).length, 95)
})

t.test('successes are not limited', async t => {
  const { grant, agent } = await openGrant()
  const { id } = agent()
  for (let i = 0; i < 30; i++) t.notOk(isRefusal(await grant({ agentId: id, clientSecret: secret }, peer)))
})

t.test('a full queue of hashes is answered as it is, and is no failure of the agent', async t => {
  const full = { refusal: 'too_many_logins', status: 429, detail: '' } as const
  const { grant, agent, bad } = await openGrant({ verifySecret: async () => full })
  const { id } = agent()
  for (let i = 0; i < 10; i++) t.equal(await grant({ agentId: id, clientSecret: secret }, peer), full)
  t.strictSame(bad, [])
})

t.test('a failing store gives back what the attempt took of the limits', async t => {
  const { grant, agent } = await openGrant({ verifySecret: () => Promise.reject(new TypeError('store')) })
  const { id } = agent()
  for (let i = 0; i < 10; i++) await t.rejects(grant({ agentId: id, clientSecret: secret }, peer), { message: 'store' })
})

t.test('an agent revoked while its secret is hashed gets no token', async t => {
  const hashing = Promise.withResolvers<boolean>()
  const { grant, agent, agents } = await openGrant({ verifySecret: () => hashing.promise })
  const made = agent()
  const answer = grant({ agentId: made.id, clientSecret: secret }, peer)
  agents.set(made.id, { ...made, status: 'Revoked' })
  hashing.resolve(true)
  t.match(await answer, unauthorized)
})

t.test('of two credentials the external token is tried first, and the secret after it', async t => {
  const tried: string[] = []
  const external = (valid: boolean) => async (token: string, agent: AgentRecord) => {
    tried.push(`${token} for ${agent.name}`)
    return valid
  }
  const good = await openGrant({ verifyExternal: external(true) })
  const { id } = good.agent({ name: 'x' })
  t.notOk(isRefusal(await good.grant({ agentId: id, clientSecret: 'wrong', externalToken: 'e' }, peer)))
  t.strictSame(good.hashed, [])
  t.strictSame(tried, ['e for x'])
})

t.test('an external token that is not valid leaves it to the secret', async t => {
  const { grant, agent } = await openGrant({ verifyExternal: async () => false })
  const { id } = agent()
  t.notOk(isRefusal(await grant({ agentId: id, clientSecret: secret, externalToken: 'e' }, peer)))
  t.match(await grant({ agentId: id, externalToken: 'e' }, peer), unauthorized)
  t.match(await grant({ agentId: nobody, externalToken: 'e' }, peer), unauthorized)
})

t.test('a valid external token of an agent that is not active gets nothing', async t => {
  const { grant, agent } = await openGrant({ verifyExternal: async () => true })
  const { id } = agent({ status: 'Quarantined' })
  t.match(await grant({ agentId: id, externalToken: 'e' }, peer), unauthorized)
})
