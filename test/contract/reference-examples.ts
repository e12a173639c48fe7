/** The policies of the pages for reference do what the text beside them says. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseYaml } from '../../src/config/yaml.ts'
import type { RequestDescription } from '../../src/policy/request/describe.ts'
import { decision, rulebookOf } from '../fixtures/rulebook.ts'

/** The policy, or list of rules, of the only block of a page that has this rule. */
function exampleOf(page: string, rule: string, over: object) {
  const text = readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), 'utf8')
  const blocks = Array.from(text.matchAll(/^```yaml\n([\s\S]*?)^```/gm), ([, block = '']) => block)
  const [block = '', ...more] = blocks.filter(one => new RegExp(`name: ${rule}\\b`).test(one))
  if (more.length > 0) throw new TypeError(`${rule} is in several blocks`)
  const yaml = parseYaml(block)
  if ('problems' in yaml) throw new TypeError(`${page} has no rule ${rule}`)
  const policy = Array.isArray(yaml.value) ? { name: 'example', rules: yaml.value } : (yaml.value as object)
  return rulebookOf({ ...policy, ...over })
}

type Asked = RequestDescription['request'] & Omit<RequestDescription, 'request'>

/** The name of the rule that decides; null: the default. */
function ruleOf(page: string, rule: string, over: object = {}): (asked: Asked) => string | null {
  const rulebook = exampleOf(page, rule, over)
  return ({ agent, budgets, ...request }) =>
    decision(rulebook, {
      ...{ request },
      ...(agent !== undefined && { agent }),
      ...(budgets !== undefined && { budgets }),
    }).rule
}

t.test('groups: writing outside of the shop waits, but not for the team of the shop', async t => {
  const rule = ruleOf('policy-reference', 'writing-outside-the-shop')
  const writing = { method: 'POST', url: 'https://api.example.com/' }
  t.equal(rule(writing), 'writing-outside-the-shop')
  t.equal(rule({ ...writing, agent: { tags: { team: 'SHOP' } } }), null)
  for (const url of ['https://shop.example/', 'https://api.shop.example/'])
    t.equal(rule({ ...writing, url }), null, url)
  t.equal(rule({ ...writing, method: 'GET' }), null)
})

t.test('names: a comment has these members and no others', async t => {
  const rule = ruleOf('policy-reference', 'comment')
  const comment = {
    method: 'POST',
    url: 'https://api.example.com/v1/issues/7/comments',
    body: { text: 'a', author: 'b' },
  }
  t.equal(rule(comment), 'comment')
  for (const body of [{ text: 'a', admin: true }, { text: 'a', Author: 'b' }, 'text=a', {}])
    t.equal(rule({ ...comment, body }), null, JSON.stringify(body))
  t.equal(rule({ ...comment, url: comment.url.replace('7', 'all') }), null)
})

t.test(
  'GraphQL: fields are known behind aliases and fragments, a persisted query and a batch that differs are not',
  async t => {
    const rule = ruleOf('policy-reference', 'read-products')
    const ask = (body: unknown) => rule({ method: 'POST', url: 'https://shop.example.com/graphql', body })
    t.equal(ask({ query: '{ product { id } other: search { id } }' }), 'read-products')
    t.equal(ask({ query: '{ ...F } fragment F on Query { products { id } }' }), 'read-products')
    for (const body of [
      { query: '{ product: users { id } }' },
      { query: 'mutation { product { id } }' },
      { query: '{ product { id } }', extensions: { persistedQuery: { sha256Hash: 'a' } } },
      { id: 'a', variables: {} },
      [{ query: '{ product { id } }' }, { query: 'mutation { product { id } }' }],
    ])
      t.equal(ask(body), null, JSON.stringify(body))
  },
)

t.test('lists: each price is compared, the size and the labels are those of the list', async t => {
  const rule = ruleOf('policy-reference', 'only-cheap-items')
  const order = { items: [{ price: 1 }, { price: 9 }], labels: ['small', 'new', 'reviewed'] }
  const ask = (body: object) => rule({ method: 'POST', url: 'https://api.shop.example/v1/orders', body })
  t.equal(ask(order), 'only-cheap-items')
  for (const more of [{ items: [{ price: 1 }, { price: 10 }] }, { items: [] }, { labels: ['small'] }])
    t.equal(ask({ ...order, ...more }), null, JSON.stringify(more))
  t.equal(ask({ ...order, items: Array(6).fill({ price: 1 }) }), null, 'six items')
})

t.test('the literal path: its spelling decides', async t => {
  const rule = ruleOf('policy-reference', 'one-project')
  const project = 'https://git.example.com/api/v4/projects/group'
  t.equal(rule({ url: `${project}%2Fname` }), 'one-project')
  t.equal(rule({ url: `${project}/name` }), null)
  t.equal(rule({ url: `${project}/name;v=1` }), 'no-parameters')
})

t.test('method overrides: each form of them is denied', async t => {
  const rule = ruleOf('policy-reference', 'method-override', { default: 'Allow' })
  const post = { method: 'POST', url: 'https://api.example.com/x' }
  t.equal(rule({ ...post, body: { a: 1 } }), null)
  for (const name of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'])
    t.equal(rule({ ...post, headers: { [name]: 'DELETE' } }), 'method-override', name)
  t.equal(rule({ ...post, url: `${post.url}?_method=DELETE` }), 'method-override')
  t.equal(rule({ ...post, body: { _method: 'DELETE' } }), 'method-override')
})

t.test('budgets: a dear call waits, and only a small model is called when the budget is nearly spent', async t => {
  const rule = ruleOf('budgets', 'nearly-spent', { default: 'Allow' })
  const call = (model: string, used: number, maxCost = 1) =>
    rule({
      ...{ method: 'POST', url: 'https://api.openai.com/v1/chat/completions', body: { model, messages: [] }, maxCost },
      budgets: { 'agents-daily': { used } },
    })
  t.equal(call('gpt-5', 0.5), null)
  t.equal(call('gpt-5', 0.5, 2.1), 'dear')
  t.equal(call('gpt-5', 0.91), 'nearly-spent')
  t.equal(call('gpt-5-mini', 0.91), null)
  const reading = { url: 'https://docs.example.com/', budgets: { 'agents-daily': { used: 0.91 } } }
  t.equal(rule(reading), null, 'what calls no model goes on')
})
