/** Threat T31 of SECURITY.md: a body that an MCP client sends is parsed only where that is quick. */

import t from 'tap'
import { readRpcCall } from '../../../src/pipeline/mcp/json-rpc.ts'

const call = (params: object) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))

t.test('a call with a long text is read, whatever stands in it', async t => {
  for (const text of [',[{'.repeat(300_000), '\\",'.repeat(100_000), '"\\'.repeat(100_000)]) {
    t.match(readRpcCall(call({ text })), { ids: [1] })
  }
  t.match(readRpcCall(call({ list: Array(9_900).fill(0) })), { ids: [1] })
})

t.test('a body of too many values is not parsed', async t => {
  for (const params of [{ list: Array(10_100).fill(0) }, { list: Array(10_100).fill({}) }]) {
    t.equal(readRpcCall(call(params)), undefined)
  }
  const notifications = Array(10_100).fill({ jsonrpc: '2.0', method: 'x' })
  t.equal(
    readRpcCall(Buffer.from(JSON.stringify([...notifications, { jsonrpc: '2.0', id: 1, method: 'x' }]))),
    undefined,
  )
  t.equal(readRpcCall(call({ text: 'x'.repeat(1_048_576) })), undefined, 'nor one of more than a megabyte')
})
