/** Held requests in SDKs without a line of code of their own: docs/agents.md. */
import { readFileSync } from 'node:fs'
import Anthropic, { PermissionDeniedError as AnthropicDenied } from '@anthropic-ai/sdk'
import OpenAI, { PermissionDeniedError } from 'openai'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { eventually } from '../fixtures/gateway.ts'
import { said } from './fixtures/model-api.ts'
import { startModelGateway } from './fixtures/model-gateway.ts'

const messages = [{ role: 'user' as const, content: 'How are you?' }]
const { gateway, api, baseUrl } = await startModelGateway(t, true)
const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })

/** A token of an agent whose chats wait as docs/agents.md says. */
async function heldToken(waitSeconds: number): Promise<string> {
  const rule = { name: 'chat', effect: 'Hitl', waitSeconds, whenUndecided: 'refused', conditions: [] }
  const policyName = await gateway.policy({ name: `held-${waitSeconds}`, rules: [rule] })
  return (await gateway.agent({ policyName })).token
}

async function decide(t: Test, verdict: 'approve' | 'deny', body: object = {}): Promise<void> {
  const list = async () => JSON.parse((await gateway.manage('GET', '/hitl')).text) as { id: string }[]
  const found = await eventually(list, ({ length }) => length > 0)
  t.equal(found.length, 1, 'one review')
  await gateway.manage('POST', `/hitl/${found[0]?.id}/${verdict}`, body, reviewer.token)
}

const token = await heldToken(600)
const openai = new OpenAI({ apiKey: token, baseURL: `${baseUrl}/v1` })
const anthropic = new Anthropic({ authToken: token, apiKey: null, baseURL: baseUrl })

const shipped = parse(readFileSync(new URL('../../policies/default.yaml', import.meta.url), 'utf8'))

t.beforeEach(() => {
  api.seen.length = 0
})

t.test('openai waits, and gets its answer when a reviewer approves', async t => {
  const call = openai.chat.completions.create({ model: 'gpt-4o-mini', messages }).then(answer => answer)
  await decide(t, 'approve')
  t.equal((await call).choices[0]?.message.content, said.join(''))
  t.equal(api.seen.length, 1)
})

t.test('openai waits for a stream', async t => {
  const call = openai.chat.completions.create({ model: 'gpt-4o-mini', messages, stream: true }).then(answer => answer)
  await decide(t, 'approve')
  const words: string[] = []
  for await (const { choices } of await call) words.push(choices[0]?.delta.content ?? '')
  t.equal(words.join(''), said.join(''))
})

t.test('openai shows the comment of a denial', async t => {
  const call = openai.chat.completions.create({ model: 'gpt-4o-mini', messages }).catch((error: unknown) => error)
  await decide(t, 'deny', { comment: 'not on Fridays' })
  t.ok((await call) instanceof PermissionDeniedError)
  t.match(await call, { status: 403, code: 'hitl_denied', message: /not on Fridays/ })
  t.equal(api.seen.length, 0)
})

t.test('openai tries again by itself while nobody decides, and joins the same review', async t => {
  const impatient = new OpenAI({ apiKey: await heldToken(1), baseURL: `${baseUrl}/v1` })
  const call = impatient.chat.completions.create({ model: 'gpt-4o-mini', messages }).then(answer => answer)
  const lines = () => gateway.log.filter(({ status, refusal }) => status === 503 && refusal === 'review_pending')
  t.equal((await eventually(lines, ({ length }) => length > 0)).length, 1)
  await decide(t, 'approve')
  t.equal((await call).choices[0]?.message.content, said.join(''))
  t.equal(api.seen.length, 1)
})

const request = { model: 'claude-haiku', max_tokens: 100, messages }

t.test('anthropic waits, and gets its answer or the comment of a denial', async t => {
  const call = anthropic.messages.create(request).then(answer => answer)
  await decide(t, 'approve')
  t.match((await call).content, [{ type: 'text', text: said.join('') }])
  const denied = anthropic.messages.create(request).catch((error: unknown) => error)
  await decide(t, 'deny', { comment: 'not on Fridays' })
  t.ok((await denied) instanceof AnthropicDenied)
  t.match(await denied, { status: 403, message: /not on Fridays/ })
})

t.test('under the shipped policy openai and anthropic wait, with nothing set', async t => {
  const policyName = await gateway.policy({ ...shipped, name: 'as-shipped' })
  const agent = await gateway.agent({ policyName })
  const own = new OpenAI({ apiKey: agent.token, baseURL: `${baseUrl}/v1` })
  const chat = own.chat.completions.create({ model: 'gpt-4o-mini', messages }).then(answer => answer)
  await decide(t, 'approve')
  t.equal((await chat).choices[0]?.message.content, said.join(''))
  const message = new Anthropic({ authToken: agent.token, apiKey: null, baseURL: baseUrl }).messages
    .create(request)
    .then(answer => answer)
  await decide(t, 'approve')
  t.match((await message).content, [{ type: 'text', text: said.join('') }])
})

t.test('openai and anthropic that nobody answers in time say that the review is pending', async t => {
  const rules = [{ name: 'chat', effect: 'Hitl', waitSeconds: 1, conditions: [] }]
  const { token: apiKey } = await gateway.agent({ policyName: await gateway.policy({ name: 'brief', rules }) })
  const own = new OpenAI({ apiKey, baseURL: `${baseUrl}/v1`, maxRetries: 0 })
  const chat = await own.chat.completions.create({ model: 'gpt-4o-mini', messages }).catch((error: unknown) => error)
  t.match(chat, { status: 503, code: 'review_pending', message: /held for review/ })
  const claude = new Anthropic({ authToken: apiKey, apiKey: null, baseURL: baseUrl, maxRetries: 0 })
  const said = await claude.messages.create(request).catch((error: unknown) => error)
  t.match(said, { status: 503, message: /held for review/ })
  t.equal(api.seen.length, 0)
})
