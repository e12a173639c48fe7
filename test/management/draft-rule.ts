/** A rule and a test from one request, over the API and by the command. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { runCommand } from '../../src/cli/commands.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const review = await startReview(t)
const { bot, reviewer, origin, proxy, manage, url } = review
const sent: readonly (readonly [string, string])[] = [
  ...[1, 1, 2, 3].map(id => ['GET', `/v1/items/${id}`] as const),
  ...[['GET', '/v1/about'] as const, ['DELETE', '/v1/items/1'] as const],
]
for (const [method, path] of sent) await (await proxy(bot.token, origin.url + path, { method })).body?.cancel()
const json = { 'content-type': 'application/json' }
const hitlId = await review.hold('/v1/items/7', { body: '{"name":"x"}', headers: { ...json, 'X-Api-Key': 'k' } })

const auditor = await review.newReviewer({ roles: ['auditor'] })
const draft = async (body: object, token = auditor.token) => {
  const { status, text } = await manage('POST', '/policies/drafts', body, token)
  return { status, ...JSON.parse(text) }
}
const request = { url: `${origin.url}/v1/items/1` }
const given = { agentId: bot.id, request }
const sumOf = (switches: readonly { readonly adds: number }[]) => switches.reduce((sum, { adds }) => sum + adds, 0)
// The counts of the requests come a moment later.
await eventually(
  () => draft(given),
  ({ switches = [] }) => sumOf(switches) === 5,
)

t.test('the rule matches the request alone, and each switch says what it adds and what of that was denied', async t => {
  const found = await draft(given)
  t.match(found, { status: 200, matches: 0, warnings: [], redacted: [], difference: { examples: [] } })
  t.strictSame(found.switches, [
    { part: 'method', open: false, adds: 1, denied: 1 },
    { part: 'host', open: false, adds: 0, denied: 0 },
    { part: 'fields', open: false, adds: 0, denied: 0 },
    { part: 'segment 1', open: false, adds: 0, denied: 0 },
    { part: 'segment 2', open: false, adds: 0, denied: 0 },
    { part: 'segment 3', open: false, adds: 4, denied: 0 },
  ])
  const opened = await draft({ ...given, open: ['segment 3', 'method'], name: 'items', effect: 'Hitl', priority: 7 })
  t.match(opened.rule, { name: 'items', effect: 'Hitl', priority: 7 })
  t.match(opened.yaml, '/v1/items/{id:int}')
  t.notMatch(opened.yaml, 'input.method')
  t.equal(opened.matches, 5)
  t.match(opened.switches.at(-1), { part: 'segment 3', open: true, adds: 4 })
  t.match(parse(found.test), { policy: 'careful', tests: [{ request, expect: { decision: 'Allow' } }] })
  t.match(found, { decision: 'Allow', decidedBy: null, request: { ...request, headers: undefined } })
})

t.test('a held request gives a rule with its names, and says which values were not shown', async t => {
  const found = await draft({ hitlId }, reviewer.token)
  t.match(found, { status: 200, redacted: ['x-api-key'] })
  t.match(found.rule.conditions.at(-1), { field: 'input.body.@keys', value: ['name'] })
  t.notMatch(JSON.stringify(found), /api-key.*k"/i)
  t.match(parse(found.test).tests[0].expect, { decision: 'Hitl', rule: 'posts' })
  t.match(found, { decision: 'Hitl', decidedBy: 'posts', request: parse(found.test).tests[0].request })
})

t.test('a request with a secret has no test, and one that has no shape gives no rule', async t => {
  const body = { password: 'x' }
  t.match(await draft({ agentId: bot.id, request: { ...request, method: 'POST', body } }), {
    status: 200,
    test: null,
    request: null,
  })
  const odd = { agentId: bot.id, request: { url: `${origin.url}/a?b;c=1` } }
  t.match(await draft(odd), { status: 400, detail: /unusual names/ })
  const raw = await draft({ agentId: bot.id, request: { url: `${origin.url}/a;b/c` } })
  t.match(raw.rule.conditions.at(-3), { field: 'input.rawPath', operator: 'eq', value: '/a;b/c' })
  t.notMatch(JSON.stringify(raw.switches), 'segment')
  t.match(await draft({ agentId: bot.id, request: { url: 'no URL' } }), { status: 400 })
  t.match(await draft({ ...given, open: ['segment 9'] }), { errors: [{ field: 'open', message: /segment 3/ }] })
  t.match(await draft({ ...given, name: 'posts' }), { status: 400, errors: [{ field: 'name' }] })
  t.match(await draft({ agentId: bot.id }), { status: 400 })
  t.match(await draft({ hitlId: 'unknown' }), { status: 404 })
  t.match(await draft({ ...given, agentId: '00000000-0000-4000-8000-000000000000' }), {
    errors: [{ field: 'agentId' }],
  })
  t.match(await draft(given, bot.token), { status: 403 })
  const lone = await review.agent({})
  await manage('PUT', `/agents/${lone.id}/policy`, { policyName: null })
  t.match(await draft({ agentId: lone.id, request }), {
    ...{ status: 200, difference: null, test: null, matches: 0 },
    ...{ decision: null, decidedBy: null, request },
  })
})

t.test('a recorded shape gives a rule in which ids that came with several values are open', async t => {
  const { items } = JSON.parse((await manage('GET', `/agents/${bot.id}/shapes`)).text)
  const idOf = (method: string, path: string) =>
    items.find((one: Readonly<Record<string, unknown>>) => one['method'] === method && one['path'] === path)?.id
  const shapeId = idOf('GET', '/v1/items/{int}')
  const found = await draft({ agentId: bot.id, shapeId })
  t.match(found, { status: 200, matches: 4 })
  t.match(found.yaml, '/v1/items/{id:int}')
  t.match(found.switches.at(-1), { part: 'segment 3', open: true, adds: 4 })
  t.match(await draft({ agentId: bot.id, shapeId, open: [] }), { yaml: /v1\/items\/1/, matches: 0 })
  const unfit = await draft({ agentId: bot.id, shapeId: idOf('POST', '/v1/items/{int}') })
  t.match(unfit, { status: 400, errors: [{ field: 'shapeId', message: /a body that was not recorded/ }] })
  t.match(await draft({ agentId: bot.id, shapeId: 'unknown' }), { status: 400, errors: [{ field: 'shapeId' }] })
  t.match(await draft({ agentId: bot.id, shapeId }, reviewer.token), { status: 403 })
})

t.test('a test leaves out header fields that may be secrets, and says which', async t => {
  const headers = { authorization: 'Bearer abcdefgh', 'X-Ticket': 'T-1' }
  const found = await draft({ ...given, request: { ...request, headers } })
  t.match(found, { status: 200, redacted: ['authorization'] })
  t.strictSame(parse(found.test).tests[0].request, { ...request, headers: { 'X-Ticket': 'T-1' } })
  const bare = await draft({ ...given, request: { ...request, headers: { cookie: 'a=b' } } })
  t.strictSame(parse(bare.test).tests[0].request, request)
})

t.test('a reviewer makes rules of held requests alone, and is told no other rule', async t => {
  t.match(await draft(given, reviewer.token), { status: 403 })
  const own = { hitlId, name: 'posts' }
  t.match(await draft(own, reviewer.token), { status: 200, difference: null, warnings: [] })
  t.match(await draft({ hitlId }), { status: 200, difference: { examples: [] } })
})

t.test('a path of many segments gives no rule', async t => {
  const long = { url: `${origin.url}${'/a'.repeat(30)}` }
  t.match(await draft({ agentId: bot.id, request: long }), { status: 400, detail: /more than 32 parts/ })
})

t.test('the command prints the rule, and writes its test', async t => {
  const folder = testdir(t, {})
  const run = async (...args: readonly string[]) => {
    const shell = fakeShell(['policy', 'draft', ...args], { AGENT_GATEWAY_TOKEN: review.adminToken })
    return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
  }
  const made = await run('--hitl', hitlId, '--test', `${folder}/made.test.yaml`, '--at', url)
  t.match(made, { code: 0, err: /closed {2}segment 3: \d+ requests, 0 of them denied/ })
  t.match(made.err, /values that were not shown: x-api-key/)
  t.match(parse(made.out).rules, [{ name: 'drafted', effect: 'Allow' }])
  t.match(readFileSync(`${folder}/made.test.yaml`, 'utf8'), 'decision: Hitl')
  const opened = ['--open', 'segment 3', '--effect', 'Deny', '--name', 'no-items', '--json', '--at', url]
  const ofCurl = await run('--agent', bot.id, ...opened, '--', 'curl', request.url)
  t.match(JSON.parse(ofCurl.out), { rule: { name: 'no-items', effect: 'Deny' }, matches: 4 })
  const secret = ['--test', `${folder}/none.yaml`, '--at', url, '--', 'curl', request.url, '--json', '{"password":"x"}']
  t.match(await run('--agent', bot.id, ...secret), { code: 0, err: /no test/ })
  const { items } = JSON.parse((await manage('GET', `/agents/${bot.id}/shapes`)).text)
  const shape = items.find((one: Readonly<Record<string, unknown>>) => one['method'] === 'GET' && one['count'] === 4)
  t.match(await run('--agent', bot.id, `--shape=${shape.id}`, '--at', url), { code: 0, out: /\{id:int\}/ })
  t.equal((await run('--agent', bot.id)).code, 2)
  t.equal((await run()).code, 2)
})
