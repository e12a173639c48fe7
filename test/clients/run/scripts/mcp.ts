import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { main } from './calls.ts'

async function say(
  url: string,
  onprogress?: (told: { readonly message?: string | undefined }) => void,
): Promise<string> {
  const client = new Client({ name: 'says', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`))
  await client.connect(transport as Parameters<typeof client.connect>[0])
  // A stream that is cut off ends no call: the time does.
  const asked = { name: 'say', arguments: { text: 'hello' } }
  const { content } = await client.callTool(asked, undefined, { timeout: 20_000, ...(onprogress && { onprogress }) })
  await client.close()
  return JSON.stringify(content)
}

await main({
  call: async url => [200, await say(url)],
  async *stream(url) {
    // What comes before the end must be shown before it.
    yield await say(url, ({ message = '' }) => console.log(message))
  },
  up: () => Promise.reject(new Error('a tool takes no files')),
})
