/** What SDKs make of a budget that is used up: they show why, and do not sleep until the next window. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startModelGateway } from './fixtures/model-gateway.ts'

const Budgets = [{ Name: 'tokens', Unit: 'Tokens', Limit: 3, Per: 'Month' }]
const { api, gateway, baseUrl } = await startModelGateway(t, true, { Budgets })
const messages = [{ role: 'user' as const, content: 'How are you?' }]

const sdks: Readonly<Record<string, (token: string) => () => Promise<unknown>>> = {
  openai: apiKey => {
    const client = new OpenAI({ apiKey, baseURL: `${baseUrl}/v1` })
    return () => client.chat.completions.create({ model: 'gpt-4o-mini', messages, max_tokens: 2 })
  },
  'openai, a stream': apiKey => {
    const client = new OpenAI({ apiKey, baseURL: `${baseUrl}/v1` })
    return async () => {
      const whole = { stream: true, stream_options: { include_usage: true } } as const
      const stream = await client.chat.completions.create({ model: 'gpt-4o-mini', messages, max_tokens: 2, ...whole })
      for await (const _ of stream);
    }
  },
  '@anthropic-ai/sdk': authToken => {
    const client = new Anthropic({ authToken, apiKey: null, baseURL: baseUrl })
    return () => client.messages.create({ model: 'claude-haiku-4-5', max_tokens: 2, messages })
  },
}

for (const [name, clientFor] of Object.entries(sdks)) {
  t.test(`${name} says which budget is used up, at once and without another try`, async t => {
    const { id, token } = await gateway.agent()
    const call = clientFor(token)
    api.seen.length = 0
    await call()
    const error = await call().catch((error: unknown) => error)
    t.match(error, {
      status: 429,
      message: /The budget tokens is used up: \d+ of 3 tokens\. The next window begins at /,
    })
    t.equal(api.seen.length, 1, 'the provider saw the first call alone')
    const refused = await eventually(
      () => gateway.log.filter(({ status, agentId }) => status === 429 && agentId === id),
      ({ length }) => length > 0,
    )
    t.equal(refused.length, 1, 'it does not try again')
  })
}
