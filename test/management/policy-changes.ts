/** What a change of a policy would do to what was recorded, over the API and by the commands. */
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually } from '../fixtures/gateway.ts'
import { careful, startReview } from '../fixtures/review.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const review = await startReview(t)
const { bot, reviewer, origin, proxy, manage, url } = review
const sent = ['/v1/items/1', '/v1/items/2', '/v1/about?page=2']
for (const path of sent) await (await proxy(bot.token, origin.url + path)).body?.cancel()
await (await proxy(bot.token, `${origin.url}/v1/items/1`, { method: 'DELETE' })).body?.cancel()

const ask = async (path: string, body?: object, token?: string) => {
  const { status, text } = await manage(body === undefined ? 'GET' : 'POST', path, body, token)
  return { status, ...JSON.parse(text) }
}
const condition = (field: string, value: unknown, operator = 'eq') => ({ field, operator, value })
const rule = (name: string, effect: string, ...conditions: object[]) => ({ name, effect, conditions })
const items = rule('items', 'Hitl', condition('input.path', '/v1/items/{id:int}', 'pathMatches'))
const stricter = { ...careful, rules: [...careful.rules, items] }
// The shapes of other threads and gateways come a moment later.
await eventually(
  () => ask('/policies/simulate', { policy: careful }),
  ({ same }) => same === 4,
)

t.test('a change is tried on what was recorded, and what rests on values is not known', async t => {
  const same = { changes: [], same: 4, unknown: 0, agentsRead: 1, agentsLeftOut: 0, incompleteSince: null }
  t.match(await ask('/policies/simulate', { policy: careful }), { status: 200, ...same })
  const change = { before: 'Allow', after: 'Hitl', rule: 'items', count: 2, agents: [bot.id] }
  const found = await ask('/policies/simulate', { policy: stricter, agentIds: [bot.id] })
  t.match(found, { same: 2, unknown: 0, changes: [change] })
  const url = `${origin.url}/v1/items/{int}`
  const { items: recorded } = await ask(`/agents/${bot.id}/shapes`)
  const { id: shapeId } = recorded.find(({ path }: { readonly path: string }) => path === '/v1/items/{int}')
  t.strictSame(found.changes[0].examples, [{ method: 'GET', url, agentId: bot.id, shapeId, count: 2 }])
  const page = rule('page', 'Deny', condition('input.query.page', '2'))
  const rests = { ...careful, rules: [...careful.rules, page] }
  t.match(await ask('/policies/simulate', { policy: rests }), {
    ...{ same: 3, unknown: 1, changes: [] },
    unknownExamples: [{ method: 'GET', agentId: bot.id, count: 1, fields: ['input.query.page'] }],
  })
  const absent = rule('absent', 'Deny', condition('input.query.other', 'true', 'exists'))
  const without = { ...careful, rules: [...careful.rules, absent] }
  t.match(await ask('/policies/simulate', { policy: without }), { same: 4, unknown: 0 })
})

t.test('two policies are compared, and a request shows that the new one is milder', async t => {
  const milder = { ...careful, rules: careful.rules.filter(({ name }) => name !== 'deletes') }
  const found = await ask('/policies/diff', { before: 'careful', after: milder })
  t.match(found, { wider: 'shown', examples: [{ method: 'DELETE', before: 'Deny', after: 'Allow' }] })
  t.match(await ask('/policies/diff', { before: careful, after: stricter }), { status: 200, examples: [] })
})

t.test('drift tells which rules decided nothing, and which requests none covers', async t => {
  const drift = await ask('/policies/careful/drift')
  t.match(drift, { status: 200, unused: ['posts', 'puts'], agentsRead: 1 })
  t.match(drift.uncovered, [{ method: 'GET', url: `${origin.url}/v1/items/{int}`, count: 2 }])
})

t.test('what is not valid or not there is refused, and reviewers may not ask', async t => {
  t.match(await ask('/policies/simulate', { policy: { name: 'p', default: 'Perhaps' } }), { code: 'invalid_policy' })
  const unknown = '00000000-0000-4000-8000-000000000000'
  t.match(await ask('/policies/simulate', { policy: careful, agentIds: [unknown] }), {
    errors: [{ field: 'agentIds' }],
  })
  t.match(await ask('/policies/diff', { before: 'none', after: careful }), { errors: [{ field: 'before' }] })
  t.match(await ask('/policies/diff', { before: careful, after: {} }), { code: 'invalid_policy' })
  t.match(await ask('/policies/none/drift'), { status: 404 })
  for (const path of ['/policies/simulate', '/policies/diff']) {
    t.match(await ask(path, { policy: careful, before: 'careful', after: careful }, reviewer.token), { status: 403 })
  }
  t.match(await ask('/policies/careful/drift', undefined, reviewer.token), { status: 403 })
})

t.test('the commands print the same, and policy push --dry-run changes nothing', async t => {
  const folder = testdir(t, { 'careful.yaml': JSON.stringify(stricter), 'new.yaml': 'name: new\n' })
  const env = { AGENT_GATEWAY_TOKEN: review.adminToken }
  const run = async (...args: readonly string[]) => {
    const shell = fakeShell(['policy', ...args, '--at', url], env)
    return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
  }
  const file = join(folder, 'careful.yaml')
  t.match(await run('simulate', file), {
    code: 0,
    out: /2 x {2}Allow -> Hitl {2}by items, of 1 agents\n +GET \S+\/v1\/items\/\{int\} \(2\)\n2 changed, 2 the same, 0 not known; 1 agents/,
  })
  t.match(await run('simulate', file, '--fail-on', 'new-allow,new-hitl'), { code: 3 })
  t.match(await run('simulate', file, '--fail-on', 'new-allow'), { code: 0 })
  t.match(await run('simulate', file, '--fail-on', 'all'), { code: 2, err: /--fail-on must be of new-allow/ })
  t.match(JSON.parse((await run('simulate', file, '--since', '1d', '--json')).out), { same: 2 })
  t.match(await run('drift', 'careful'), {
    code: 0,
    out: /decided nothing: posts, puts\ncovered by no rule\n +2 x {2}GET /,
  })
  t.match(JSON.parse((await run('drift', 'careful', '--json')).out), { unused: ['posts', 'puts'] })
  const pushed = testdir(t, { 'new.yaml': 'name: new\n' })
  t.match(await run('push', pushed, '--dry-run'), { code: 0, out: 'created   new' })
  t.equal((await manage('GET', '/policies/new')).status, 404)
})
