import { createAnthropic } from '@ai-sdk/anthropic'
import Anthropic, { PermissionDeniedError } from '@anthropic-ai/sdk'
import { APICallError, generateText } from 'ai'
import t from 'tap'
import { keyOf, said } from './fixtures/model-api.ts'
import { realKey, startModelGateway } from './fixtures/model-gateway.ts'

const model = 'claude-haiku'
const request = { model, max_tokens: 100, messages: [{ role: 'user' as const, content: 'How are you?' }] }
const gateway = await startModelGateway(t, true)
const clientOf = (authToken: string) => new Anthropic({ authToken, apiKey: null, baseURL: gateway.baseUrl })
const client = clientOf(gateway.token)

t.beforeEach(() => {
  gateway.api.seen.length = 0
})

t.test('anthropic with the token in place of its key gets an answer, and the provider gets the real key', async t => {
  const { content } = await client.messages.create(request)
  t.match(content, [{ type: 'text', text: said.join('') }])
  t.strictSame(gateway.api.seen.map(keyOf), [`Bearer ${realKey}`])
  t.notMatch(JSON.stringify(gateway.api.seen), gateway.token)
})

t.test('anthropic gets a stream word by word', async t => {
  const words: string[] = []
  const stream = client.messages.stream(request).on('text', word => words.push(word))
  await stream.finalMessage()
  t.strictSame(words, said)
})

t.test('what anthropic used is in the log, of a stream too', async t => {
  const metered = await startModelGateway(t, true)
  const { messages } = new Anthropic({ authToken: metered.token, apiKey: null, baseURL: metered.baseUrl })
  await messages.create(request)
  await metered.gateway.exchanges(1)
  await messages.stream(request).finalMessage()
  const read = { usage: 'read', model, tokensIn: 1, tokensOut: 4 }
  t.match(await metered.gateway.exchanges(2), [read, read])
})

t.test('anthropic shows why it was refused', async t => {
  const error = await clientOf(gateway.deniedToken)
    .messages.create(request)
    .catch(error => error)
  t.ok(error instanceof PermissionDeniedError)
  t.match(error, { status: 403, message: /Chat is closed on Sundays/ })
  t.equal(gateway.api.seen.length, 0)
})

t.test('the Vercel SDK shows why it was refused', async t => {
  const provider = createAnthropic({ authToken: gateway.deniedToken, baseURL: `${gateway.baseUrl}/v1` })
  const error = await generateText({ model: provider(model), prompt: 'Hello' }).catch(error => error)
  t.ok(APICallError.isInstance(error))
  t.match(error, { statusCode: 403, message: /Chat is closed on Sundays/ })
})
