import { createReadStream } from 'node:fs'
import Anthropic, { APIError } from '@anthropic-ai/sdk'
import { main } from './calls.ts'

const clientOf = (baseURL: string) => new Anthropic({ apiKey: 'unused', baseURL })
const asked = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'hello' }] }

await main({
  async call(url) {
    try {
      const { content } = await clientOf(url).messages.create(asked)
      return [200, JSON.stringify(content)]
    } catch (error) {
      if (error instanceof APIError && error.status !== undefined) return [error.status, error.message]
      throw error
    }
  },
  async *stream(url) {
    if (url.includes('/down/')) yield* (await clientOf(url).beta.files.download('large')).body!
    else {
      for await (const event of await clientOf(url).messages.create({ ...asked, stream: true })) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') yield event.delta.text
      }
    }
  },
  async up(url, file) {
    return (await clientOf(url).beta.files.upload({ file: createReadStream(file) })).filename
  },
})
