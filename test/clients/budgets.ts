/**
 * SDKs under budgets: what they use is what is counted. Of a budget that is used up they show why, and do not sleep until the
 * next window.
 */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI, { AzureOpenAI } from 'openai'
import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startModelGateway } from './fixtures/model-gateway.ts'

/** Each call of the model server uses 1 token read and 4 written, or 9 read: all of the budget. */
const cost = 0.009
const Budgets = [{ Name: 'money', Limit: cost, Per: 'Month' }]
const Prices = [{ Model: '*', Input: 1_000, Output: 2_000 }]
const { api, gateway, baseUrl } = await startModelGateway(t, true, { Budgets, Prices })
const messages = [{ role: 'user' as const, content: 'How are you?' }]

interface Used {
  readonly read: number | undefined
  readonly written: number | undefined
}

/** A call of an SDK, and the usage that it shows. */
type UsedBy = (token: string) => () => Promise<Used>

const model = 'gpt-4o-mini'
const openAi = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${baseUrl}/v1` })
const anthropic = (authToken: string) => new Anthropic({ authToken, apiKey: null, baseURL: baseUrl })
/** Their key is in a field of its own, so the token is in that of the gateway. */
const inOwnField = (token: string) => ({ 'Gateway-Authorization': `Bearer ${token}` })
const gemini = (token: string) =>
  new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl, headers: inOwnField(token) } })
const flash = { model: 'gemini-2.5-flash', contents: 'How are you?', config: { maxOutputTokens: 2 } }
const claude = { model: 'claude-haiku-4-5', max_tokens: 2, messages }

const sdks: Readonly<Record<string, UsedBy>> = {
  openai(token) {
    const client = openAi(token)
    return async () => {
      const { usage } = await client.chat.completions.create({ model, messages, max_tokens: 2 })
      return { read: usage?.prompt_tokens, written: usage?.completion_tokens }
    }
  },
  'openai, a stream'(token) {
    const client = openAi(token)
    return async () => {
      const whole = { stream: true, stream_options: { include_usage: true } } as const
      const stream = await client.chat.completions.create({ model, messages, max_tokens: 2, ...whole })
      let used: Used = { read: undefined, written: undefined }
      for await (const { usage } of stream) used = { read: usage?.prompt_tokens, written: usage?.completion_tokens }
      return used
    }
  },
  'openai, responses'(token) {
    const client = openAi(token)
    return async () => {
      const { usage } = await client.responses.create({ model, input: 'How are you?', max_output_tokens: 16 })
      return { read: usage?.input_tokens, written: usage?.output_tokens }
    }
  },
  'openai, a stream of responses'(token) {
    const client = openAi(token)
    return async () => {
      const stream = await client.responses.create({ model, input: 'Hi', max_output_tokens: 16, stream: true })
      let used: Used = { read: undefined, written: undefined }
      for await (const event of stream) {
        if (event.type !== 'response.completed') continue
        used = { read: event.response.usage?.input_tokens, written: event.response.usage?.output_tokens }
      }
      return used
    }
  },
  'openai, embeddings'(token) {
    const client = openAi(token)
    return async () => {
      const { usage } = await client.embeddings.create({ model, input: 'Hi', encoding_format: 'float' })
      return { read: usage.prompt_tokens, written: 0 }
    }
  },
  'openai, Azure'(token) {
    const client = new AzureOpenAI({
      apiKey: 'none',
      defaultHeaders: inOwnField(token),
      endpoint: baseUrl,
      apiVersion: '2024-10-21',
      deployment: model,
    })
    return async () => {
      const { usage } = await client.chat.completions.create({ model, messages, max_tokens: 2 })
      return { read: usage?.prompt_tokens, written: usage?.completion_tokens }
    }
  },
  '@google/genai'(token) {
    const { models } = gemini(token)
    return async () => {
      const { usageMetadata } = await models.generateContent(flash)
      return { read: usageMetadata?.promptTokenCount, written: usageMetadata?.candidatesTokenCount }
    }
  },
  '@google/genai, a stream'(token) {
    const { models } = gemini(token)
    return async () => {
      let used: Used = { read: undefined, written: undefined }
      for await (const { usageMetadata } of await models.generateContentStream(flash)) {
        used = { read: usageMetadata?.promptTokenCount, written: usageMetadata?.candidatesTokenCount }
      }
      return used
    }
  },
  '@anthropic-ai/sdk'(token) {
    const client = anthropic(token)
    return async () => {
      const { usage } = await client.messages.create(claude)
      return { read: usage.input_tokens, written: usage.output_tokens }
    }
  },
  '@anthropic-ai/sdk, a stream'(token) {
    const client = anthropic(token)
    return async () => {
      const { usage } = await client.messages.stream(claude).finalMessage()
      return { read: usage.input_tokens, written: usage.output_tokens }
    }
  },
}

for (const [name, clientFor] of Object.entries(sdks)) {
  t.test(`${name}: what it uses is counted, and it says which budget is used up without another try`, async t => {
    const { id, token } = await gateway.agent()
    const call = clientFor(token)
    api.seen.length = 0
    const { read, written } = await call()
    const linesOf = (status: number) =>
      eventually(
        () => gateway.log.filter(line => line.status === status && line.agentId === id),
        ({ length }) => length > 0,
      )
    t.match(await linesOf(200), [{ usage: 'read', tokensIn: read, tokensOut: written, cost, budget: 'money' }])
    const error = await call().catch((error: unknown) => error)
    t.match(error, {
      status: 429,
      message: /The budget money is used up: 0\.01 of 0\.01 USD\. The next window begins at /,
    })
    t.equal(api.seen.length, 1, 'the provider saw the first call alone')
    t.equal((await linesOf(429)).length, 1, 'it does not try again')
  })
}
