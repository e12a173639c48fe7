/** Threat T15 of SECURITY.md: an approval sends only what the rules in force at that moment let pass. */
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type Review, type ReviewSetup, startReview } from '../fixtures/review.ts'
import { testdir } from '../fixtures/testdir.ts'

const certFile = fileURLToPath(new URL('../fixtures/tls/cert.pem', import.meta.url))
const keyFile = new URL('../fixtures/tls/key.pem', import.meta.url)
const when = (field: string, value: string, operator = 'eq') => ({ field, operator, value })
const deny = (...conditions: object[]) => ({ default: 'Hitl', rules: [{ name: 'barred', effect: 'Deny', conditions }] })
const anything = { default: 'Hitl', rules: [] }

/** A review with a policy of the API, which the requests of a new bot are held by. */
async function startChanging(t: Test, setup: ReviewSetup = {}) {
  const review = await startReview(t, {
    answer: (req, res) => void req.resume().on('end', () => (req.url === '/reset' ? res.destroy() : res.end('done'))),
    ...setup,
  })
  const policy = await review.policy({ name: 'changing', ...anything })
  const bot = await review.agent({ policyName: policy })
  return {
    ...review,
    bot,
    hold: (path: string, init: RequestInit = {}) => review.hold(path, { bot, ...init }),
    async change(document: object) {
      const { status, text } = await review.manage('PUT', `/policies/${policy}`, document)
      if (status !== 200) throw new TypeError(text)
    },
  }
}

const itemOf = async (review: Review, id: string) => (await review.call('GET', `/hitl/${id}`)).json()
const barred = { status: 403, code: 'policy_denied', policy: 'changing', rule: 'barred' }

for (const threads of [1, 2]) {
  t.test(`with ${threads} of threads`, async t => {
    const review = await startChanging(t, { config: { System: { Server: { Threads: threads } } } })
    const { origin, hold, approve, change, bot, manage } = review
    t.beforeEach(async () => {
      origin.seen.length = 0
      await change(anything)
      await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'changing' })
    })

    t.test('a request without a message is no other at its approval because of its MCP fields', async t => {
      const id = await hold('/stream', { method: 'GET', headers: { 'Mcp-Method': 'tools/call', 'Mcp-Name': 'add' } })
      const approved = await approve(id, {})
      t.strictSame([approved.status, origin.seen.length], [200, 1])
    })

    t.test('what the policy denies now is not sent: it waits on, with the reason on record', async t => {
      const id = await hold('/things', { body: 'one' })
      await change(deny(when('input.path', '/things')))
      const refused = await approve(id, { comment: 'fine' })
      t.match(await refused.json(), { ...barred, detail: /rule "barred"/, source: 'rule' })
      t.match(await itemOf(review, id), { status: 'Pending', pending: { replay: null, approvedBy: [], attempt: 1 } })
      const { items } = JSON.parse((await manage('GET', `/audit?subject=${id}`)).text)
      t.match(items[0], {
        action: 'hitl.release',
        actor: 'gateway',
        details: { outcome: 'notSent', why: 'policy_denied', rule: 'barred', policy: 'changing', source: 'rule' },
      })
      t.equal(origin.seen.length, 0)
      await change(anything)
      t.equal((await approve(id)).status, 200)
      t.equal(origin.seen.length, 1)
    })

    t.test('an approval stands where the rules allow the request or ask for a person', async t => {
      for (const effect of ['Allow', 'Hitl']) {
        const id = await hold('/things')
        await change({ default: 'Deny', rules: [{ name: 'new', effect, conditions: [when('input.path', '/things')] }] })
        t.equal((await approve(id)).status, 200, effect)
        await change(anything)
      }
    })

    t.test('more approvals that the rules ask for by now are waited for', async t => {
      const { newReviewer } = review
      const two = { name: 'two', effect: 'Hitl', approvals: 2, conditions: [when('input.body.amount', '5')] }
      const id = await hold('/things', { body: '{"amount":5}', headers: { 'Content-Type': 'application/json' } })
      await change({ default: 'Hitl', rules: [two] })
      const refused = await approve(id)
      t.match(await refused.json(), {
        status: 409,
        code: 'wrong_state',
        detail: /2 approvals/,
        rule: 'two',
        approvals: 1,
      })
      t.match(await itemOf(review, id), {
        status: 'Pending',
        pending: { approvedBy: [], approvalsNeeded: 2, attempt: 1 },
      })
      t.match(await (await review.call('GET', `/hitl?agentId=${bot.id}`)).json(), [{ id, approvalsNeeded: 2 }])
      t.equal((await approve(id)).status, 202)
      t.equal(origin.seen.length, 0)
      t.equal((await approve(id, {}, (await newReviewer()).token)).status, 200)
      t.equal(origin.seen.length, 1)
    })

    t.test('an agent that has another policy by now, or none, is decided by that', async t => {
      const id = await hold('/things', { method: 'DELETE' })
      await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'careful' })
      t.match(await (await approve(id)).json(), { code: 'policy_denied', policy: 'careful', rule: 'deletes' })
      await manage('PUT', `/agents/${bot.id}/policy`, { policyName: null })
      t.match(await (await approve(id)).json(), { code: 'policy_denied', rule: null, source: 'unassigned' })
      await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'allow-all' })
      t.equal((await approve(id)).status, 200)
    })

    t.test('rules read what was true when the request came: fields, token, client, and its body', async t => {
      const long = `${'x'.repeat(100_000)}forbidden`
      const body = JSON.stringify({ amount: 250, text: long })
      const headers = { 'Content-Type': 'application/json', 'X-Team': 'red', TE: 'trailers' }
      const id = await hold('/things?a=b', { body, headers })
      const denied = [
        when('input.headers.x-team', 'red'),
        when('input.headers.te', 'trailers'),
        when('input.headers.host', `127.0.0.1:${review.port}`),
        when('input.headers.gateway-authorization', 'true', 'exists'),
        when('input.headers.via', 'true', 'notExists'),
        when('agent.claims.sub', bot.id),
        when('input.clientIp', '127.0.0.1'),
        when('input.body.amount', '200', 'gt'),
        when('input.bodyText', 'forbidden', 'contains'),
        when('input.destinationIp', '127.0.0.1'),
        when('agent.id', bot.id),
        when('input.query.a', 'b'),
      ]
      for (const condition of denied) {
        await change(deny(condition))
        t.match(await (await approve(id)).json(), barred, condition.field)
      }
      for (const condition of denied) {
        await change(deny(condition, when('input.method', 'GET')))
        if (condition !== denied.at(-1)) continue
        t.equal((await approve(id)).status, 200)
      }
      t.equal(origin.seen.length, 1)
    })

    t.test('what was sent without a known outcome is not sent again when the policy denies it', async t => {
      const id = await hold('/reset')
      t.equal((await approve(id)).status, 502)
      await change(deny(when('input.path', '/reset')))
      t.match(await (await approve(id, { resend: true })).json(), barred)
      t.match(await itemOf(review, id), { status: 'Approved', pending: { replay: 'failed' } })
      t.equal(origin.seen.length, 1)
    })

    t.test('of two approvals none is left when the policy denies the request', async t => {
      await change({ default: 'Allow', rules: [{ name: 'two', effect: 'Hitl', approvals: 2, conditions: [] }] })
      const id = await hold('/things')
      t.equal((await approve(id)).status, 202)
      await change(deny(when('input.path', '/things')))
      const second = await review.newReviewer()
      t.match(await (await approve(id, {}, second.token)).json(), barred)
      t.match(await itemOf(review, id), { pending: { approvedBy: [] } })
    })
  })
}

t.test('rules that change while the connection is dialled decide again', async t => {
  const dialled = Promise.withResolvers<Socket>()
  const tls = createServer(dialled.resolve)
  await new Promise<void>(resolve => tls.listen(0, '127.0.0.1', resolve))
  t.teardown(() => tls.close())
  const { port } = tls.address() as AddressInfo
  const config = { Proxy: { CaFile: certFile } }
  const { approve, change, bot, proxy } = await startChanging(t, { config, lookup: async () => ['127.0.0.1'] })
  const held = await proxy(bot.token, `https://idp.test:${port}/x`, { method: 'POST' })
  const approved = approve(held.headers.get('gateway-hitl-id')!)
  const socket = await dialled.promise
  await change(deny(when('input.path', '/x')))
  const secure = new TLSSocket(socket, { isServer: true, cert: readFileSync(certFile), key: readFileSync(keyFile) })
  const seen: unknown[] = []
  secure.on('data', chunk => seen.push(chunk)).on('error', () => {})
  t.match(await (await approved).json(), barred)
  t.strictSame(seen, [])
})

t.test('a gateway that only observes by now sends what was approved', async t => {
  const directory = testdir(t)
  const before = await startChanging(t, { directory })
  const id = await before.hold('/x')
  await before.change(deny(when('input.path', '/x')))
  await before.close()
  const after = await startReview(t, { directory, origin: before.origin, config: { Policy: { Mode: 'observe' } } })
  t.equal((await after.approve(id, {}, before.reviewer.token)).status, 200)
})
