/** Whole requests are kept for a time that an admin sets, sealed and without secrets, to be decided again. Threat T80. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fleetSize } from '../fixtures/fleet.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'

const review = await startReview(t, {
  config: { System: { Server: { Threads: 2 } }, Recording: { MaxBodyBytes: 1_000 } },
})
const { origin, proxy, manage } = review
const bot = await review.agent({ policyName: 'allow-all' })
const recording = `/agents/${bot.id}/recording`
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const secret = `ghp_${'aB3'.repeat(12)}`

async function post(body: string, type = 'application/json', headers: Readonly<Record<string, string>> = {}) {
  const init = { method: 'POST', body, headers: { 'content-type': type, ...headers } }
  const answer = await proxy(bot.token, `${origin.url}/v1/payments`, init)
  await answer.body?.cancel()
  return answer.status
}

interface Counted {
  readonly path: string
  readonly count: number
  readonly samples: number
  readonly unfit: string | null
  readonly names: Readonly<Record<string, readonly string[]>>
}

async function shapes(least: number): Promise<readonly Counted[]> {
  const read = async () => JSON.parse((await manage('GET', `/agents/${bot.id}/shapes`)).text)
  const sum = ({ items }: { items: readonly Counted[] }) => items.reduce((all, { count }) => all + count, 0)
  return (await eventually(read, page => sum(page) >= least)).items
}

const setRecording = async (body: object, token?: string) => (await manage('PUT', recording, body, token)).status
const marker = 'text of a sample'

t.test('the mode of one agent is set by admins, for seven days at most', async t => {
  for (const until of [undefined, inDays(8), inDays(-1)])
    t.equal(await setRecording({ mode: 'samples', ...(until && { until }) }), 400, `${until}`)
  t.equal(await setRecording({ mode: 'all', until: inDays(1) }), 400)
  t.equal(await setRecording({ mode: 'samples', until: inDays(1) }, review.reviewer.token), 403)
  t.equal((await manage('PUT', recording.replace(/[0-9a-f]{12}/, '0'.repeat(12)), { mode: null })).status, 404)
  t.match(JSON.parse((await manage('GET', `/agents/${bot.id}`)).text), { recording: null })
  const until = inDays(1)
  t.equal(await setRecording({ mode: 'samples', until }), 200)
  t.match(JSON.parse((await manage('GET', `/agents/${bot.id}`)).text), { recording: { mode: 'samples', until } })
})

t.test('bodies that no rule reads are kept with their requests, but not those with a secret', async t => {
  for (const amount of [50, 70, 200]) await post(JSON.stringify({ amount, text: marker }))
  await post(JSON.stringify({ amount: 300, text: `the key ${secret}` }))
  await post(JSON.stringify({ amount: 400, text: 'x'.repeat(2_000) }))
  await post('some text', 'text/plain')
  await post('amount=5&text=x', 'application/x-www-form-urlencoded')
  const found = await shapes(7)
  const rows = found.map(({ unfit, count, samples }) => [unfit, count, samples])
  t.strictSame(rows.sort(), [
    [null, 1, 1],
    [null, 4, 3],
    ['a body that was not recorded', 2, 0],
  ])
  const sent = origin.seen.map(({ bodyBytes }) => bodyBytes)
  t.ok(sent.includes(JSON.stringify({ amount: 400, text: 'x'.repeat(2_000) }).length), 'a longer body is streamed')
})

t.test('a change is tried on the values of the samples, and what has none stays unknown', async t => {
  const large = { field: 'input.body.amount', operator: 'gt', value: '100' }
  const policy = {
    name: 'allow-all',
    default: 'Allow',
    rules: [{ name: 'large', effect: 'Hitl', conditions: [large] }],
  }
  const { text } = await manage('POST', '/policies/simulate', { policy, agentIds: [bot.id] })
  t.match(JSON.parse(text), {
    same: 3,
    unknown: 3,
    changes: [{ before: 'Allow', after: 'Hitl', rule: 'large', count: 1 }],
  })
})

t.test('after the end of the time nothing more is kept, and an admin can forget what was', async t => {
  t.equal(await setRecording({ mode: 'off', until: inDays(1) }), 200)
  await post(JSON.stringify({ amount: 1 }))
  t.equal(await setRecording({ mode: null }), 200)
  await post(JSON.stringify({ amount: 1 }))
  const found = await shapes(8)
  const later = found.filter(({ names }) => names['input.body.@keys']?.join() === 'amount')
  t.match(later, [{ count: 1, samples: 0 }], 'off counts nothing, and shapes keep no request')
  t.equal((await manage('DELETE', `/agents/${bot.id}/shapes`)).status, 200)
  t.match(JSON.parse((await manage('GET', `/agents/${bot.id}/shapes`)).text), { totalCount: 0 })
})

t.test('no file of the store has a secret or the text of a sample', async t => {
  t.equal(await setRecording({ mode: 'samples', until: inDays(1) }), 200)
  await post(JSON.stringify({ text: marker }), 'application/json', { Cookie: secret, 'X-Other': secret })
  await post(JSON.stringify({ text: secret }))
  t.match(await shapes(2), [{ count: 2, samples: 1 }])
  await review.close()
  const files = ['gateway.db', 'gateway.db-wal'].map(name => join(review.directory, 'data', name))
  const text = files
    .filter(existsSync)
    .map(file => readFileSync(file, 'latin1'))
    .join('')
  // A fleet has no such files.
  t.equal(/v1.*payments/s.test(text), fleetSize === 1)
  for (const word of [marker, 'ghp_aB3', bot.token]) t.notOk(text.includes(word), word)
  t.notMatch(JSON.stringify(review.log), /ghp_aB3|text of a sample/)
})
