import { createOpenAI } from '@ai-sdk/openai'
import { APICallError, generateText, streamText } from 'ai'
import OpenAI, { PermissionDeniedError } from 'openai'
import t from 'tap'
import { keyOf, said } from './fixtures/model-api.ts'
import { realKey, startModelGateway } from './fixtures/model-gateway.ts'

const model = 'gpt-4o-mini'
const messages = [{ role: 'user' as const, content: 'How are you?' }]
const gateway = await startModelGateway(t, true)
const client = new OpenAI({ apiKey: gateway.token, baseURL: `${gateway.baseUrl}/v1` })

t.beforeEach(() => {
  gateway.api.seen.length = 0
})

t.test('openai with the token in place of its key gets an answer, and the provider gets the real key', async t => {
  const answer = await client.chat.completions.create({ model, messages })
  t.equal(answer.choices[0]?.message.content, said.join(''))
  t.strictSame(gateway.api.seen.map(keyOf), [`Bearer ${realKey}`])
  t.notMatch(JSON.stringify(gateway.api.seen), gateway.token)
})

t.test('openai gets a stream word by word', async t => {
  const words: string[] = []
  for await (const { choices } of await client.chat.completions.create({ model, messages, stream: true })) {
    words.push(choices[0]?.delta.content ?? '')
  }
  t.strictSame(
    words.filter(word => word !== ''),
    said,
  )
})

t.test('what openai used is in the log, of a stream too if it asks for it', async t => {
  const metered = await startModelGateway(t, true)
  const { completions } = new OpenAI({ apiKey: metered.token, baseURL: `${metered.baseUrl}/v1` }).chat
  await completions.create({ model, messages })
  await metered.gateway.exchanges(1)
  const streamOptions = { include_usage: true }
  const streamed = []
  for await (const { usage } of await completions.create({
    model,
    messages,
    stream: true,
    stream_options: streamOptions,
  })) {
    streamed.push(usage?.completion_tokens)
  }
  t.equal(streamed.at(-1), 4, 'the client gets it as well')
  await metered.gateway.exchanges(2)
  for await (const _ of await completions.create({ model, messages, stream: true }));
  const read = { usage: 'read', model, tokensIn: 1, tokensOut: 4 }
  t.match(await metered.gateway.exchanges(3), [read, read, { usage: 'missing', tokensIn: undefined }])
})

t.test('openai with a placeholder for its key and the token in the header of the gateway', async t => {
  const other = await startModelGateway(t, false)
  const defaultHeaders = { 'Gateway-Authorization': `Bearer ${other.token}` }
  const placeholder = new OpenAI({ apiKey: 'unused', baseURL: `${other.baseUrl}/v1`, defaultHeaders })
  const answer = await placeholder.chat.completions.create({ model, messages })
  t.equal(answer.choices[0]?.message.content, said.join(''))
  t.strictSame(other.api.seen.map(keyOf), [`Bearer ${realKey}`])
})

t.test('openai shows why it was refused', async t => {
  const denied = new OpenAI({ apiKey: gateway.deniedToken, baseURL: `${gateway.baseUrl}/v1` })
  const error = await denied.chat.completions.create({ model, messages }).catch(error => error)
  t.ok(error instanceof PermissionDeniedError)
  t.match(error, { status: 403, code: 'policy_denied', type: 'permission_error', message: /Chat is closed on Sundays/ })
  t.equal(gateway.api.seen.length, 0)
})

t.test('the Vercel SDK gets an answer and a stream', async t => {
  const provider = createOpenAI({ apiKey: gateway.token, baseURL: `${gateway.baseUrl}/v1` })
  const { text } = await generateText({ model: provider.chat(model), prompt: 'How are you?' })
  t.equal(text, said.join(''))
  const stream = streamText({ model: provider.chat(model), prompt: 'How are you?' })
  const words: string[] = []
  for await (const word of stream.textStream) words.push(word)
  t.strictSame(words.join(''), said.join(''))
})

t.test('the Vercel SDK shows why it was refused', async t => {
  const provider = createOpenAI({ apiKey: gateway.deniedToken, baseURL: `${gateway.baseUrl}/v1` })
  const error = await generateText({ model: provider.chat(model), prompt: 'Hello' }).catch(error => error)
  t.ok(APICallError.isInstance(error))
  t.match(error, { statusCode: 403, message: /Chat is closed on Sundays/ })
})
