/** Threat T31 of SECURITY.md: a body that an MCP client sends is parsed only where that is quick. */
import { quantile } from '../../../bench/lib/stats.ts'
import { asksForList, readRpcCall } from '../../../src/pipeline/mcp/json-rpc.ts'
import t from '../../fixtures/tap.ts'

const call = (params: object) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))

t.test('a call with a long text is read, whatever stands in it', t => {
  for (const text of [',[{'.repeat(300_000), '\\",'.repeat(100_000), '"\\'.repeat(100_000)]) {
    t.match(readRpcCall(call({ text })), { ids: [1] })
  }
  t.match(readRpcCall(call({ list: Array(9_900).fill(0) })), { ids: [1] })
})

t.test('a body of too many values is not parsed', t => {
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

/** All ways to write a text in JSON. */
function spellings(text: string): string[] {
  const [first = '', ...rest] = text
  if (first === '') return ['']
  const code = first.charCodeAt(0).toString(16)
  const heads = [first, `\\u00${code}`, `\\u00${code.toUpperCase()}`, ...(first === '/' ? ['\\/'] : [])]
  return spellings(rest.join('')).flatMap(tail => [...new Set(heads)].map(head => head + tail))
}

t.test('a body that cannot be read asks for the tools when it is JSON and has the name of the method', t => {
  const list = '{"method":"tools/list"}'
  const escaped = String.raw`{"method":"\u0074ool\u0073\/lis\u0074"}`
  const asking = {
    twice: list.replace('{', '{"method":"ping",'),
    mark: `\ufeff ${list}`,
    cut: `[${list}`,
    long: list.replace('}', `,"x":"${'x'.repeat(1_048_576)}"}`),
    escaped,
    'escaped twice': escaped.replace('{', '{"method":"ping",'),
  }
  for (const [name, body] of Object.entries(asking)) t.equal(asksForList(Buffer.from(body)), true, name)
  for (const name of spellings('tools/list')) {
    t.ok(asksForList(Buffer.from(`{"x":"a\\nb","method":"${name}"}`)), name)
    t.notOk(asksForList(Buffer.from(`{"x":"a\\nb","method":"${name}s"}`)), `${name}s`)
  }
  const others = {
    form: `--x\r\nContent-Type: application/json\r\n\r\n${list}\r\n--x--`,
    prompt: JSON.stringify({ prompt: list, length: 'x'.repeat(1_048_576) }),
    method: '{"method":"tools/lists"}',
    param: '{"method":"tools/call","params":{"name":"tools/list"}}',
    code: JSON.stringify({ text: 'a\n'.repeat(10_000) }),
  }
  for (const [name, body] of Object.entries(others)) t.equal(asksForList(Buffer.from(body)), false, name)
})

t.test('the name of the method is found behind many of its characters', t => {
  for (const filler of ['/', '/l', '2', '\\\\', '/2']) {
    const note = filler.repeat(2_000)
    for (const name of ['tools/list', 'tools\\/list', 'tools\\u002flist', 'tools/l\\u0069st']) {
      t.ok(asksForList(Buffer.from(`{"note":"${note}","method":"${name}"}`)), `${filler} ${name}`)
      t.ok(asksForList(Buffer.from(`{"method":"${name}","note":"${note}"}`)), `${name} ${filler}`)
    }
  }
})

t.test('a body that is full of one character of the name is searched as fast as another', t => {
  for (const filler of ['/', '/l', '/lis', '2', '\\', '/\\', '\\u00', '22\\']) {
    const body = Buffer.alloc(1_048_576, filler)
    const times = Array.from({ length: 9 }, () => {
      const before = process.threadCpuUsage()
      t.notOk(asksForList(body))
      const { user, system } = process.threadCpuUsage(before)
      return (user + system) / 1_000
    })
    const ms = quantile(times, 0.5)
    t.ok(ms < 10, `${filler}: ${ms.toFixed(1)} ms`)
  }
})
