/** A server of the Model Context Protocol with one tool, `say`. */
import { json } from 'node:stream/consumers'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'
import { greeting, isStreamed, parts } from '../modes.ts'
import type { Asked, Server } from '../upstream.ts'

export const answerMcp: Server = asked => {
  if (asked.rest !== '/mcp') return false
  void serve(asked)
  return true
}

/** Without sessions: each request has a server of its own. */
async function serve({ mode, req, res, untilReleased }: Asked): Promise<void> {
  const mcp = new McpServer({ name: 'says', version: '1.0.0' })
  mcp.registerTool('say', { inputSchema: { text: z.string() } }, async ({ text }, { _meta, sendNotification }) => {
    const { progressToken } = _meta ?? {}
    if (isStreamed(mode) && progressToken !== undefined) {
      const params = { progressToken, progress: 1, total: 2, message: parts.first }
      await sendNotification({ method: 'notifications/progress', params })
      await untilReleased()
    }
    const said = mode === 'up' || mode === 'down' ? text : isStreamed(mode) ? parts.last : greeting
    return { content: [{ type: 'text', text: said }] }
  })
  const transport = new StreamableHTTPServerTransport({})
  res.on('close', () => void mcp.close())
  // It is read at once, since the server that measures bodies does not wait.
  const body = req.method === 'POST' ? await json(req) : undefined
  await mcp.connect(transport as Parameters<typeof mcp.connect>[0])
  await transport.handleRequest(req, res, body)
}
