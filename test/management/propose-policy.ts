/** A policy from what an agent did, over the API and by the command. Threats T80, T90. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { runCommand } from '../../src/cli/commands.ts'
import type { RuleEvidence } from '../../src/policies/evidence.ts'
import { createClock } from '../fixtures/clock.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const minuteMs = 60_000
const dayMs = 86_400_000
// A host of one day waits for a person. The clocks of a database and of other threads cannot be moved.
const clock = createClock(Math.floor(Date.now() / dayMs) * dayMs - minuteMs)
const review = await startReview(t, { clock, config: { Storage: {}, System: { Server: { Threads: 1 } } } })
const { bot, reviewer, origin, proxy, manage, url } = review
await (await proxy(bot.token, `${origin.url}/v1/about`)).body?.cancel()
clock.advance(2 * minuteMs)
const sent = ['/v1/items/1', '/v1/items/2', '/v1/items/3', '/v1/items?page=2', '/v1/about']
for (const path of sent) await (await proxy(bot.token, origin.url + path)).body?.cancel()
await (await proxy(bot.token, `${origin.url}/v1/items/1`, { method: 'DELETE' })).body?.cancel()
const json = (body: object) => ({ body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
await review.approve(await review.hold('/v1/notes', json({ text: 'a value that is nowhere' })))

const propose = async (order: object, token?: string) => {
  const { status, text } = await manage('POST', '/policies/propose', order, token)
  return { status, ...JSON.parse(text) }
}
const learned = { agentIds: [bot.id], mode: 'learn' }
// The shapes of other threads and gateways come a moment later.
await eventually(
  () => propose(learned),
  ({ used }) => used === 7,
)

t.test(
  'a policy that is learned allows what was read, holds what was approved, and has evidence and tests',
  async t => {
    const made = await propose({ ...learned, name: 'of-bot', unseen: 'Deny' })
    t.match(made, { status: 200, used: 7, allowed: 6, held: 1, hosts: [], warnings: [], incompleteSince: null })
    t.match(made.policy, { name: 'of-bot', default: 'Deny' })
    const found = made.policy.rules.map(
      ({ effect, conditions }: { effect: string; conditions: { value: unknown }[] }) => {
        return [effect, conditions[1]?.value, conditions[3]?.value]
      },
    )
    t.strictSame(found.sort(), [
      ['Allow', 'GET', ['/v1/about', '/v1/items/{id:int}']],
      ['Allow', 'GET', ['/v1/items']],
      ['Hitl', 'POST', ['/v1/notes']],
    ])
    t.strictSame(made.leftOut, [
      { cause: 'a body that was not recorded', count: 1 },
      { cause: 'denied by a policy', count: 1 },
    ])
    t.match(made.yaml, '# seen 5 times on 2 days')
    t.notMatch(JSON.stringify(made), /a value that is nowhere/)
    const { tests } = parse(made.tests)
    const decisions = tests.map(({ name, expect }: { name: string; expect: { decision: string } }) => {
      return `${name.replace(/[\d, ]+/g, '')} ${expect.decision}`
    })
    t.strictSame([...new Set(decisions)].sort(), ['nearly Deny', 'recorded Allow', 'recorded Hitl'])
  },
)

t.test('a policy that is narrowed holds what was not recorded, and is put in force as it is', async t => {
  const { policy, ...made } = await propose({ agentIds: [bot.id], policy: 'careful' })
  t.match(made, { status: 200, used: 7, held: 1 })
  t.match(policy, { name: 'careful', default: 'Hitl' })
  await review.policy({ ...policy, name: 'narrowed' })
  const [saved] = JSON.parse((await manage('GET', '/audit?action=policy.create&subject=narrowed')).text).items
  const { evidence } = saved.details
  t.strictSame(evidence.map(({ rule, count, days }: RuleEvidence) => [rule, count, days]).sort(), [
    ['default-seen', 5, 2],
    ['default-seen-2', 1, 1],
  ])
  const items = JSON.parse((await manage('GET', `/agents/${bot.id}/shapes`)).text).items
  const idOf = (end: string) => items.find(({ path }: { path: string }) => path.endsWith(end)).id
  t.strictSame(
    evidence.flatMap(({ shapes }: RuleEvidence) => shapes).sort(),
    ['/{int}', '/items', '/about'].map(idOf).sort(),
  )
  const again = { ...policy, name: 'narrowed', description: 'the rules are not new' }
  t.equal((await manage('PUT', '/policies/narrowed', again)).status, 200)
  const [replaced] = JSON.parse((await manage('GET', '/audit?action=policy.replace&subject=narrowed')).text).items
  t.notOk('evidence' in replaced.details)
  await manage('PUT', '/policies', { policies: [{ ...policy, name: 'pushed' }, again], prune: false })
  const [pushed] = JSON.parse((await manage('GET', '/audit?action=policy.create&subject=pushed')).text).items
  t.strictSame(pushed.details.evidence, evidence)
  t.equal((await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'narrowed' })).status, 200)
  const statusOf = async (path: string, method = 'GET') => {
    const answer = await proxy(bot.token, origin.url + path, { method })
    await answer.body?.cancel()
    return answer.status
  }
  for (const path of ['/v1/items/99', '/v1/items?page=3', '/v1/about']) t.equal(await statusOf(path), 200, path)
  for (const path of ['/v1/items/me', '/v1/items?all=1', '/v1/aboutx']) t.equal(await statusOf(path), 202, path)
  t.equal(await statusOf('/v1/items/1', 'DELETE'), 403)
  t.equal((await manage('PUT', `/agents/${bot.id}/policy`, { policyName: 'careful' })).status, 200)
})

t.test('agents, policies and times that are not there are refused, and reviewers may not ask', async t => {
  const unknown = '00000000-0000-4000-8000-000000000000'
  t.match(await propose({ agentIds: [unknown] }), { status: 400, errors: [{ field: 'agentIds' }] })
  t.match(await propose({ agentIds: [bot.id], policy: 'none', mode: 'narrow' }), { errors: [{ field: 'policy' }] })
  t.match(await propose({ agentIds: [] }), { status: 400 })
  t.match(await propose({ ...learned, until: '2020-01-01T00:00:00Z' }), { status: 200, used: 0 })
  t.match(await propose(learned, reviewer.token), { status: 403 })
  t.match(await propose(learned, bot.token), { status: 403 })
})

t.test('policy propose --agent prints the policy and writes its tests, which pass', async t => {
  const folder = testdir(t)
  const env = { AGENT_GATEWAY_TOKEN: review.adminToken }
  const run = async (...args: readonly string[]) => {
    const shell = fakeShell(['policy', ...args], env)
    return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
  }
  const files = [join(folder, 'of-bot.yaml'), join(folder, 'of-bot.test.yaml')] as const
  const asked = ['propose', '--agent', bot.id, '--since', '2d', '--at', url]
  const made = await run(...asked, '--name', 'of-bot', '--output', files[0], '--tests', files[1])
  t.match(made, { code: 0, err: /requests: 10 used, 9 allowed, 1 held\nleft out: 3 x held, and not approved/ })
  t.match(parse(readFileSync(files[0], 'utf8')), { name: 'of-bot' })
  t.match(await run('test', folder), { code: 0 })
  t.match(await run(...asked), { code: 0, out: /name: careful/ }, 'narrows the policy of the agent')
  t.match(await run('propose'), { code: 2, err: /--agent or --log is needed/ })
  t.match(await run(...asked, '--policy', 'none'), { code: 1, err: /answered 400 to .*\n {2}policy: must be the name/ })
})
