/** What is had for tokens of agents is of these tokens alone. Threats T84 and T88 of SECURITY.md. */
import { randomInt } from 'node:crypto'
import t from 'tap'
import { AgentCache } from '../../src/credentials/agent-cache.ts'
import { AgentKeepers } from '../../src/credentials/agent-keepers.ts'
import { subjectTokenOf } from '../../src/credentials/subject-token.ts'
import { agentTokenBounds, createCredentialTable, type WantedCredential } from '../../src/credentials/table.ts'
import type { OwnRequests } from '../../src/upstream/own-requests.ts'
import { createClock } from '../fixtures/clock.ts'
import { eventually } from '../fixtures/gateway.ts'
import { runs } from '../fixtures/runs.ts'
import { clientSetting } from '../fixtures/token-server.ts'

const setting = clientSetting({ Type: 'AgentTokenExchange' })

/** A table over keepers of a token server that writes into each token for which one it was given. */
function open() {
  const clock = createClock()
  const asked: string[] = []
  /** By number of the request: what is given for each token, and how long it lasts. */
  const given = { tokenOf: (subject: string, _: number) => `for:${subject}`, seconds: 3_600, status: 200 }
  const ownRequests: Pick<OwnRequests, 'ask'> = {
    async ask({ body }) {
      const subject = new URLSearchParams(String(body)).get('subject_token') ?? ''
      const answer = {
        ...{ access_token: given.tokenOf(subject, asked.push(subject)), expires_in: given.seconds },
        token_type: 'Bearer',
      }
      await new Promise(setImmediate)
      const { status } = given
      const problem = { error: status === 400 ? 'invalid_grant' : 'server_error' }
      return { status, fields: [], body: Buffer.from(JSON.stringify(status === 200 ? answer : problem)) }
    },
  }
  const sourceParts = { clock, ownRequests, servers: new Map(), secrets: { read: async () => 'secret' } }
  const keepers = new AgentKeepers({ clock, sourceParts, onAttempt: () => {} })
  const table = createCredentialTable({
    ...{ known: [], clock, keepers, onUse: () => {} },
    need: async (_, refused, subject) => keepers.renewed(setting, subject!, refused),
  })
  const wantedOf = (agentId: string, token: string, seconds = 3_600): WantedCredential => {
    const exp = clock.now() / 1_000 + seconds
    const subject = subjectTokenOf({ agentId, claims: { sub: agentId, external_sub: 'x', exp }, token: jwt(token) })
    if (subject === undefined) throw new TypeError('no token of the provider')
    return { name: 'shop', agentId, subject }
  }
  return { clock, asked, given, table, wantedOf }
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const jwt = (jti: string) => `${part({ alg: 'RS256' })}.${part({ jti })}.c2ln`
const held = ({ name, agentId, subject }: WantedCredential): WantedCredential => ({
  ...{ name, agentId },
  subject: subject && { ...subject, token: undefined },
})

t.test('among requests of two agents with several tokens none gets what is had for another token', async t => {
  const { table, wantedOf, asked } = open()
  const crossed: string[] = []
  const count = runs(10_000)
  await Promise.all(
    Array.from({ length: count }, async () => {
      const [agentId, token] = [`agent-${randomInt(2)}`, `token${randomInt(20)}`]
      const wanted = wantedOf(agentId, `${agentId}-${token}`)
      if ((await table.ready(wanted, false)) !== undefined) return
      const value = table.fresh(wanted)?.value
      if (value !== `for:${jwt(`${agentId}-${token}`)}`) crossed.push(`${token}: ${value}`)
    }),
  )
  t.strictSame(crossed, [])
  t.ok(asked.length <= 40, 'each token is exchanged once')
})

t.test('a value ends with the token that it was had for, and is not sent after it', async t => {
  const { clock, table, wantedOf } = open()
  const wanted = wantedOf('ada', 'short', 200)
  t.equal(await table.ready(wanted, false), undefined)
  t.match(table.fresh(wanted)?.value, /for:/)
  await clock.advance(160_000)
  t.match(table.fresh(wanted)?.value, /for:/)
  await clock.advance(20_000)
  t.equal(table.fresh(wanted), undefined)
  await clock.advance(20_001)
  t.match(await table.ready(wanted, false), { refusal: 'own_token_needed' })
})

t.test('a held request has what its token was exchanged for, while the gateway knows that token', async t => {
  const { clock, table, wantedOf, asked } = open()
  const wanted = wantedOf('ada', 'held')
  t.match(await table.ready(held(wanted), true), { refusal: 'own_token_needed' }, 'nobody has exchanged it')
  await table.ready(wanted, false)
  const later = held(wanted)
  t.equal(await table.ready(later, true), undefined)
  t.equal(table.fresh(later)?.value, `for:${jwt('held')}`)
  await clock.advance(3_590_000)
  t.equal(asked.length, 1)
  await clock.advance(20_000)
  table.sweep()
  const refused = await table.ready(held(wanted), true)
  t.match(refused, { refusal: 'own_token_needed', detail: /has ended, or this gateway does not have it/ })
  t.match(await table.ready(held(wantedOf('bob', 'held')), true), { refusal: 'own_token_needed' }, 'another agent')
})

t.test('when an agent is forgotten, so is what was had for its tokens, and nothing of others', async t => {
  const { table, wantedOf, asked } = open()
  const [ada, bob] = [wantedOf('ada', 'a'), wantedOf('bob', 'b')]
  for (const one of [ada, bob]) await table.ready(one, false)
  table.forget('ada')
  t.match(await table.ready(held(ada), true), { refusal: 'own_token_needed' })
  t.equal(await table.ready(held(bob), true), undefined)
  await table.ready(wantedOf('ada', 'a'), false)
  t.equal(asked.length, 3)
})

t.test('an exchange that ends after its agent was forgotten is kept for no other request', async t => {
  const { table, wantedOf, asked } = open()
  const wanted = wantedOf('ada', 'a')
  const under = table.ready(wanted, false)
  await eventually(
    () => asked.length,
    count => count === 1,
  )
  table.forget('ada')
  t.equal(await under, undefined)
  t.match(await table.ready(held(wanted), true), { refusal: 'own_token_needed' })
})

t.test('after a 401 there is another value once a minute, and one is fetched ahead of the end', async t => {
  const { clock, table, wantedOf, asked, given } = open()
  Object.assign(given, { tokenOf: (_: string, count: number) => `value-${count}`, seconds: 600 })
  const wanted = wantedOf('ada', 'a')
  await table.ready(wanted, false)
  t.equal(await table.renew(wanted, 1), true)
  t.equal(table.fresh(wanted)?.value, 'value-2')
  t.equal(await table.renew(wanted, 2), false, 'agents can provoke answers with 401')
  await clock.advance(560_000)
  const next = wantedOf('ada', 'a')
  t.equal(table.ready(next, false), undefined)
  t.equal(table.ready(wantedOf('ada', 'a'), false), undefined)
  await eventually(
    () => table.fresh(wantedOf('ada', 'a'))?.value,
    value => value === 'value-3',
  )
  t.equal(table.fresh(next)?.value, 'value-2', 'it goes on with what it was given')
  t.equal(asked.length, 3)
})

t.test('an agent with many tokens loses its own oldest alone', async t => {
  const cache = new AgentCache<{ readonly endsAt: number }>({ perAgent: 2, agents: 2 })
  const entry = { endsAt: 10 }
  cache.set('bob', 'b', entry)
  for (const key of ['1', '2', '3']) cache.set('ada', key, entry)
  t.equal(cache.get('ada', '1'), undefined)
  t.equal(cache.get('bob', 'b'), entry)
  cache.set('carl', 'c', entry)
  t.equal(cache.get('ada', '3'), undefined, 'beyond the agents there can be, that one leaves which called longest ago')
  t.equal(cache.get('bob', 'b'), entry)
  cache.sweep(10)
  t.equal(cache.get('bob', 'b'), undefined)
  t.equal(agentTokenBounds.perAgent * agentTokenBounds.agents, 131_072)
})

t.test('an agent with many tokens does not ask a server without end that does not answer it', async t => {
  const { clock, table, wantedOf, asked, given } = open()
  given.status = 503
  const ask = (agentId: string, token: number) => table.ready(wantedOf(agentId, `token${token}`), false)
  for (let token = 0; token < 100; token++) t.match(await ask('ada', token), { refusal: 'credential_unavailable' })
  t.equal(asked.length, 1)
  t.match(await ask('bob', 1), { refusal: 'credential_unavailable' })
  t.equal(asked.length, 2, 'another agent has its own pause')
  for (const seconds of [1.2, 1.2, 1.2, 130]) {
    await clock.advance(seconds * 1_000)
    table.sweep()
    for (let token = 0; token < 33; token++) await ask('ada', token)
  }
  t.equal(asked.length, 5, 'the pause doubles, and one that was long ago is forgotten')
  await clock.advance(10_000)
  given.status = 200
  t.equal(await ask('ada', 1), undefined)
  given.status = 400
  t.match(await ask('ada', 2), { refusal: 'own_token_needed' })
  given.status = 200
  t.equal(await ask('ada', 3), undefined, 'a token that is refused says nothing of others')
})

t.test('an agent ends its pause with no token that is refused at the same time', async t => {
  const { table, wantedOf, asked, given } = open()
  const statuses = [500, 400]
  Object.defineProperty(given, 'status', { get: () => statuses.shift() ?? 200 })
  const ask = (token: number) => table.ready(wantedOf('ada', `${token}`), false)
  const refusals = await Promise.all([ask(1), ask(2)])
  t.match(refusals, [{ refusal: 'credential_unavailable' }, { refusal: 'own_token_needed' }])
  t.match(await ask(3), { refusal: 'credential_unavailable' })
  t.equal(asked.length, 2)
})

t.test(
  'an agent with many tokens that are refused has few of them exchanged, one after another or at once',
  async t => {
    const { clock, table, wantedOf, asked, given } = open()
    given.status = 400
    const ask = (token: string, agentId = 'ada') => table.ready(wantedOf(agentId, token), false)
    const codes = async (from: number, count: number) =>
      (await Promise.all(Array.from({ length: count }, (_, i) => ask(`${from + i}`)))).map(found => found?.refusal)
    const { perAgent } = agentTokenBounds
    t.strictSame(new Set(await codes(0, perAgent)), new Set(['own_token_needed']))
    t.match(await ask('0'), { refusal: 'own_token_needed' })
    t.match(await ask('another'), { refusal: 'credential_unavailable' })
    t.match(await ask('0'), { refusal: 'own_token_needed' }, 'what is known of a token is told')
    t.equal(asked.length, perAgent)
    await clock.advance(10_000)
    t.strictSame((await codes(100, 20)).filter(code => code === 'own_token_needed').length, 2)
    given.status = 200
    t.equal(await ask('a', 'bob'), undefined, 'other agents are asked for')
    await clock.advance(170_000)
    table.sweep()
    const late = Array.from({ length: 3 * perAgent }, (_, i) => i)
    for (const token of late)
      t.equal(await ask(`new ${token}`), undefined, 'those that the server takes are not counted')
    const { length } = asked
    given.status = 400
    await codes(200, 200)
    t.equal(asked.length, length + perAgent, 'also of requests that come at once')
  },
)

t.test('keys, tokens of the gateway and opaque tokens are not exchanged', async t => {
  const facts = { agentId: 'ada', claims: { sub: 'ada', external_sub: 'x', exp: 9 }, token: jwt('a') }
  t.match(subjectTokenOf(facts), { agentId: 'ada', token: jwt('a'), endsAt: 9_000 })
  t.equal(subjectTokenOf({ ...facts, claims: { sub: 'ada', exp: 9 } }), undefined)
  t.equal(subjectTokenOf({ ...facts, token: 'opaque' }), undefined)
})
