/** What is learned of requests, and what teaches nothing. Threat T90. */
import t from 'tap'
import { parse } from 'yaml'
import { proposalYaml, tryProposal } from '../../../src/policies/proposal.ts'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { lintPolicy } from '../../../src/policy/lint/lint.ts'
import { learn, type ProposeOptions } from '../../../src/policy/propose/learn.ts'
import { narrow } from '../../../src/policy/propose/narrow.ts'
import { patternsOf } from '../../../src/policy/propose/segments.ts'
import { shapeOf } from '../../../src/policy/propose/shape.ts'
import { type RecordedRequest, whyIneligible } from '../../../src/policy/propose/template.ts'
import type { RequestDescription } from '../../../src/policy/request/describe.ts'
import { decision, described, policyOf, rulebookOf } from '../../fixtures/rulebook.ts'

const dayMs = 86_400_000
const agent = { id: '00000000-0000-4000-8000-000000000001' }
const choices = { isExact: false, promotes: false, unseen: 'Hitl' } as const

type Request = RequestDescription['request']

function see(request: Request, given: Partial<RecordedRequest> = {}): RecordedRequest {
  const found = described({ request, agent })
  const shape = shapeOf(found)
  if ('unfit' in shape) throw new TypeError(shape.unfit)
  const usual = { agentId: agent.id, request: found, shape, at: 0, effect: 'Allow', status: 200 } as const
  return { ...usual, verdict: null, signals: [], ...given }
}

const onDays = (days: readonly number[], request: Request, given: Partial<RecordedRequest> = {}) =>
  days.map(day => see(request, { at: day * dayMs, ...given }))

function learned(recorded: readonly RecordedRequest[], options: Partial<ProposeOptions> = {}) {
  const observed = { recorded, eligible: recorded.filter(one => whyIneligible(one) === undefined) }
  const proposal = learn('p', observed, { ...choices, ...options })
  tryProposal(proposal, observed, {})
  const rulebook = rulebookOf(proposal.document)
  return { proposal, effectOf: (request: Request) => decision(rulebook, { request, agent }).decision }
}

const get = (path: string): Request => ({ url: `https://api.example.com${path}` })
const post = (path: string, body: unknown): Request => ({ ...get(path), method: 'POST', body })

t.test('ids become a class from three on; words, hosts and the first segment stay', async t => {
  const patterns = (...paths: readonly string[]) =>
    [
      ...new Set(
        patternsOf(
          paths.map(path => path.slice(1).split('/')),
          false,
        ),
      ),
    ].sort()
  t.strictSame(patterns('/users/1', '/users/2'), ['/users/1', '/users/2'])
  t.strictSame(patterns('/users/1', '/users/2', '/users/3'), ['/users/{id:int}'])
  t.strictSame(patterns('/users/1', '/users/2', '/users/3', '/users/me'), ['/users/me', '/users/{id:int}'])
  t.strictSame(patterns('/a/login', '/a/logout', '/a/export'), ['/a/export', '/a/login', '/a/logout'])
  t.strictSame(patterns('/1', '/2', '/3'), ['/1', '/2', '/3'])
  t.strictSame(
    patterns('/u/1', '/u/2', '/u/3/keys'),
    ['/u/1', '/u/2', '/u/3/keys'],
    'not where other things stand below them',
  )
  t.strictSame(patterns('/u/1/x/7', '/u/2/x/8', '/u/3/x/9'), ['/u/1/x/7', '/u/2/x/8', '/u/3/x/9'])
  const deep = [1, 2, 3].flatMap(one => [4, 5, 6].map(other => `/u/${one}/x/${other}`))
  t.strictSame(patterns(...deep), ['/u/{id:int}/x/{id:int}'])
  t.strictSame(patterns('/u/*', '/u/{id}'), ['/u/\\*', '/u/\\{id}'])
  t.strictSame(
    patternsOf(
      [
        ['u', '1'],
        ['u', '2'],
        ['u', '3'],
      ],
      true,
    ),
    ['/u/1', '/u/2', '/u/3'],
  )
})

t.test('reading is allowed as recorded, and /users/me is not /users/{id}', async t => {
  const { effectOf } = learned([1, 2, 3].flatMap(id => onDays([0, 1], get(`/users/${id}`))))
  t.equal(effectOf(get('/users/99')), 'Allow')
  for (const path of ['/users/me', '/users', '/users/1/keys', '/users/1/', '/users/-1', '/users/%31'])
    t.equal(effectOf(get(path)), 'Hitl', path)
  t.equal(effectOf({ ...get('/users/1'), method: 'HEAD' }), 'Hitl')
  t.equal(effectOf({ url: 'http://api.example.com/users/1' }), 'Hitl')
  t.equal(effectOf({ ...get('/users/1'), body: { admin: true } }), 'Hitl', 'a body that no request had')
})

t.test('a query has the parameters that were recorded, and no others', async t => {
  const { effectOf } = learned([...onDays([0, 1], get('/items')), see(get('/list?page=1&page.size=5'))])
  for (const path of ['/items', '/list?page=7', '/list?page.size=1&page=2&page=3', '/list?page'])
    t.equal(effectOf(get(path)), 'Allow', path)
  for (const path of [
    '/items?acl',
    '/list',
    '/list?page=1&all=true',
    '/list?page=1;all=true',
    '/list?pageXsize=1',
    '/list?',
  ])
    t.equal(effectOf(get(path)), path === '/list?' ? effectOf(get('/list')) : 'Hitl', path)
})

t.test('a path that servers read in different ways is allowed as it was sent', async t => {
  const paths = ['/@types%2fnode', '/@scope%2fname', '/a;b']
  const { effectOf, proposal } = learned(paths.flatMap(path => onDays([0, 1], get(path))))
  for (const path of paths) t.equal(effectOf(get(path)), 'Allow', path)
  for (const path of ['/@types/node', '/@types%2Fnode', '/@types%2fother', '/@types%2fnode?x=1', '/a', '/a;b;c'])
    t.equal(effectOf(get(path)), 'Hitl', path)
  t.equal(proposal.document.rules.length, 1)
  t.strictSame(lintPolicy(policyOf(proposal.document)).warnings, [])
})

t.test('changes need three requests on two days', async t => {
  const request = post('/notes', { text: 'x' })
  t.equal(learned(onDays([0, 0, 0], request)).effectOf(request), 'Hitl')
  t.equal(learned(onDays([0, 1], request)).effectOf(request), 'Hitl')
  const { effectOf } = learned(onDays([0, 0, 1], request))
  t.equal(effectOf(request), 'Allow')
  t.equal(effectOf(post('/notes', { text: 'x', owner: 'y' })), 'Hitl', 'a further field')
  t.equal(effectOf(post('/notes', [{ text: 'x' }])), 'Hitl', 'a list')
  t.equal(effectOf({ ...request, method: 'PUT' }), 'Hitl')
})

t.test('addresses that are not private, international names and hosts of one day wait for a person', async t => {
  for (const host of ['203.0.113.7', '8.8.8.8', '[2606:4700::1]', 'xn--80ak6aa92e.example', 'api.xn--p1ai']) {
    const request = { url: `https://${host}/items` }
    t.equal(learned(onDays([0, 1], request)).effectOf(request), 'Hitl', host)
  }
  for (const host of ['127.0.0.1:8080', '10.1.2.3', '[::1]', 'api.example']) {
    const request = { url: `http://${host}/items` }
    const { effectOf, proposal } = learned(onDays([0, 1], request))
    t.equal(effectOf(request), 'Allow', host)
    t.strictSame(proposal.hosts, [])
    t.equal(learned(onDays([0, 0, 0], request)).effectOf(request), 'Hitl', `${host} on one day`)
  }
  const other = { url: 'https://new.example/items' }
  const { effectOf, proposal } = learned([...onDays([0, 1], get('/items')), ...onDays([1, 1, 1], other)])
  t.strictSame([effectOf(get('/items')), effectOf(other)], ['Allow', 'Hitl'])
  const origin = 'https://new.example'
  t.strictSame(proposal.hosts, [{ agentId: agent.id, origin, days: 1, causes: ['seen on one day only'] }])
  t.equal(proposal.document.rules.find(({ effect }) => effect === 'Hitl')?.reason, 'host: seen on one day only')
  const failed = see(other, { at: 0, status: 404 })
  t.equal(learned([failed, ...onDays([1, 1], other)]).effectOf(other), 'Hitl', 'a request that failed is no second day')
})

t.test('of two hosts with names that are nearly the same both wait for a person', async t => {
  const markedAmong = (...hosts: readonly string[]) =>
    learned(hosts.flatMap(host => onDays([0, 1], { url: `https://${host}/` }))).proposal.hosts.map(
      ({ origin, causes }) => {
        t.strictSame(causes, ['resembles another host'])
        return origin.replace('https://', '')
      },
    )
  for (const other of [
    'api.paypa1.example',
    'api.paypai.example',
    'api-paypal.example',
    'api.paypals.example',
    'api.papyal.example',
  ])
    t.strictSame(markedAmong('api.paypal.example', other), ['api.paypal.example', other], other)
  for (const pair of [
    ['morning.example', 'moming.example'],
    ['wvvw.example', 'www.example'],
    ['cloud.example', 'doud.example'],
    ['api.click.example', 'api.dick.example'],
    ['api.github.com', 'api.github.co'],
    ['github.com', 'github.om'],
    ['github.com', 'github.con'],
  ])
    t.strictSame(markedAmong(...pair), pair, pair.join())
  for (const pair of [
    ['ci.example', 'd.example'],
    ['shop.de', 'shop.dk'],
    ['shop.com.au', 'shop.com.nz'],
    ['docker.com', 'docker.io'],
    ['pypi.org', 'pypi.io'],
  ])
    t.strictSame(markedAmong(...pair), [], pair.join())
  for (const other of ['api.example.evil.test', 'api.example-evil.test'])
    t.strictSame(markedAmong('api.example', other), [other])
  for (const other of ['www.paypal.example', 'api2.paypal.example', 'api.other.example', '10.0.0.1', '10.0.0.2'])
    t.strictSame(markedAmong('api.paypal.example', 'api1.paypal.example', other), [], other)
})

t.test('what people decide stays with them', async t => {
  const request = post('/refunds', { amount: 1 })
  const held = { effect: 'Hitl', verdict: 'approved' } as const
  const often = Array.from({ length: 10 }, (_, day) => see(request, { ...held, at: day * dayMs }))
  t.equal(learned(often).effectOf(request), 'Hitl')
  t.equal(learned(often, { promotes: true }).effectOf(request), 'Allow')
  t.equal(learned(often.slice(1), { promotes: true }).effectOf(request), 'Hitl', 'nine times')
  const denied = [...often, see(request, { effect: 'Hitl', verdict: 'denied' })]
  t.equal(learned(denied, { promotes: true }).effectOf(request), 'Hitl')
  const wider = onDays([0, 1, 2], post('/refunds', { amount: 1, note: 'x' }))
  t.equal(learned([...wider, ...often.slice(0, 1)]).effectOf(request), 'Hitl', 'nor do wider rules allow it')
  t.equal(
    learned(onDays([0, 1, 2], { ...get('/a'), method: 'DELETE' })).effectOf({ ...get('/a'), method: 'DELETE' }),
    'Hitl',
  )
})

t.test('refused, failed and risky requests teach nothing', async t => {
  for (const given of [{ status: 404 }, { status: 0 }, { effect: 'Deny' }, { signals: ['secret-in-body'] }] as const)
    t.equal(learned([see(get('/a'), given)]).effectOf(get('/a')), 'Hitl', JSON.stringify(given))
})

t.test('tools and models are named one by one', async t => {
  const call = (name: string, args: object) =>
    post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
  const calls = ['search', 'fetch'].flatMap(name => onDays([0, 1, 1], call(name, { q: 'x' })))
  const { effectOf, proposal } = learned(calls)
  t.equal(proposal.document.rules.length, 1)
  t.equal(effectOf(call('search', { q: 'y' })), 'Allow')
  t.equal(effectOf(call('delete', { q: 'y' })), 'Hitl')
  t.equal(effectOf(call('search', { q: 'y', all: true })), 'Hitl')
  t.equal(effectOf(post('/mcp', [JSON.parse('{"jsonrpc":"2.0","id":1,"method":"ping"}')])), 'Hitl')
  const chat = (model: string) => post('/v1/chat/completions', { model, messages: [] })
  const models = learned(onDays([0, 1, 1], chat('small')))
  t.equal(models.effectOf(chat('small')), 'Allow')
  t.equal(models.effectOf(chat('large')), 'Hitl')
})

t.test('a secret in a path or a name makes no rule', async t => {
  const secret = 'AKIAIOSFODNN7EXAMPLE'
  for (const request of [get(`/keys/${secret}`), post('/a', { [secret]: 1 })])
    t.match(shapeOf(described({ request })), { unfit: /secret/ })
})

t.test('text of agents is in values alone', async t => {
  const hostile = ['a\nrules: []', '# comment', '!!js/function x', '*alias', '- x', 'a: b', '"', "'", '{x}', '\u2028']
  const recorded = hostile.flatMap(name => onDays([0, 1, 1], post('/x', { [name]: 1 })))
  const { proposal } = learned(recorded)
  const yaml = proposalYaml(proposal)
  t.strictSame(parse(yaml), JSON.parse(JSON.stringify(proposal.document)))
  for (const line of yaml.split('\n').filter(text => /^\s*#/.test(text))) t.match(line, /^ *# [a-z0-9, -]+$/)
  for (const { name } of proposal.document.rules) t.match(name, /^[a-z0-9-]+$/)
})

t.test('a narrowed policy holds what was not recorded, and keeps what it denied', async t => {
  const rules = [
    {
      name: 'no-admin',
      priority: 5,
      effect: 'Deny',
      conditions: [{ field: 'input.path', operator: 'startsWith', value: '/admin' }],
    },
    {
      name: 'api',
      priority: 5,
      effect: 'Allow',
      conditions: [{ field: 'input.origin', operator: 'eq', value: 'https://api.example.com' }],
    },
  ]
  const own = compilePolicySync(policyOf({ name: 'p', default: 'Deny', rules }))
  const recorded = [...[1, 2, 3].map(id => see(get(`/users/${id}`))), see(get('/admin/x'), { effect: 'Deny' })]
  const observed = { recorded, eligible: recorded.filter(one => whyIneligible(one) === undefined) }
  const proposal = narrow(own, observed, false)!
  t.strictSame(tryProposal(proposal, observed, {}, own), { warnings: [], allowed: 3, held: 0 })
  const rulebook = rulebookOf(proposal.document)
  const effectOf = (request: Request) => decision(rulebook, { request, agent }).decision
  t.equal(effectOf(get('/users/7')), 'Allow')
  t.equal(effectOf(get('/users/export')), 'Hitl')
  t.equal(effectOf(get('/admin/users')), 'Deny')
  t.equal(effectOf({ url: 'https://other.example/' }), 'Deny')
  t.strictSame(
    proposal.document.rules.map(({ name, priority }) => `${name} ${priority}`),
    ['no-admin 11', 'api-seen 11', 'api-not-seen 10'],
  )
})

t.test('a host of one day is held when a policy is narrowed, unless the rule names it', async t => {
  const byMethod = { field: 'input.method', operator: 'eq', value: 'GET' }
  const byHost = { field: 'input.host', operator: 'in', value: ['api.example.com', 'b.example'] }
  const recorded = [see(get('/items'))]
  for (const [conditions, effect] of [
    [[byMethod], 'Hitl'],
    [[byMethod, byHost], 'Allow'],
    [[{ any: [byHost] }], 'Hitl'],
  ] as const) {
    const rules = [{ name: 'r', effect: 'Allow', conditions }]
    const own = compilePolicySync(policyOf({ name: 'p', default: 'Deny', rules }))
    const proposal = narrow(own, { recorded, eligible: recorded }, false)!
    t.equal(decision(rulebookOf(proposal.document), { request: get('/items'), agent }).decision, effect)
    t.equal(proposal.hosts.length, 1)
  }
})

t.test('a proposal that is milder than the policy before is an error', async t => {
  const own = compilePolicySync(policyOf({ name: 'p', default: 'Deny' }))
  const recorded = [see(get('/a'))]
  const proposal = learn('p', { recorded, eligible: recorded }, choices)
  t.throws(() => tryProposal(proposal, { recorded, eligible: recorded }, {}, own), /allows more/)
})
