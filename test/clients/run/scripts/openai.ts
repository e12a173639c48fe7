import { createReadStream } from 'node:fs'
import OpenAI, { APIError } from 'openai'
import { main } from './calls.ts'

const clientOf = (url: string) => new OpenAI({ apiKey: 'unused', baseURL: `${url}/v1` })
const asked = { model: 'm', messages: [{ role: 'user' as const, content: 'hello' }] }

await main({
  async call(url) {
    try {
      const { choices } = await clientOf(url).chat.completions.create(asked)
      return [200, choices[0]?.message.content ?? '']
    } catch (error) {
      if (error instanceof APIError && error.status !== undefined) return [error.status, error.message]
      throw error
    }
  },
  async *stream(url) {
    if (url.includes('/down/')) yield* (await clientOf(url).files.content('large')).body!
    else {
      const stream = await clientOf(url).chat.completions.create({ ...asked, stream: true })
      for await (const { choices } of stream) yield choices[0]?.delta.content ?? ''
    }
  },
  async up(url, file) {
    return (await clientOf(url).files.create({ file: createReadStream(file), purpose: 'batch' })).filename
  },
})
