/** Requests for the tools of an MCP server are known by their bodies, whatever they hold. T64, and T31: in turns. */
import fc from 'fast-check'
import t from 'tap'
import { ListQuestion, ListSearch } from '../../../src/pipeline/answers/list-search.ts'
import { stepsPerTurn } from '../../../src/policy/turns/evaluation.ts'
import { runs } from '../../fixtures/runs.ts'

function asksForList(body: Buffer): boolean {
  const question = new ListQuestion(body)
  while (!question.advance({ left: stepsPerTurn }));
  return question.asks
}

/** All ways to write a text in JSON. */
function spellings(text: string): string[] {
  const [first = '', ...rest] = text
  if (first === '') return ['']
  const code = first.charCodeAt(0).toString(16)
  const heads = [first, `\\u00${code}`, `\\u00${code.toUpperCase()}`, ...(first === '/' ? ['\\/'] : [])]
  return spellings(rest.join('')).flatMap(tail => [...new Set(heads)].map(head => head + tail))
}

t.test('a body that cannot be read asks for the tools when it is JSON and has the name of the method', async t => {
  const list = '{"method":"tools/list"}'
  const escaped = String.raw`{"method":"\u0074ool\u0073\/lis\u0074"}`
  const asking = {
    twice: list.replace('{', '{"method":"ping",'),
    case: list.replace('method', 'Method'),
    'both cases': list.replace('{', '{"Method":"ping",'),
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

t.test('the name of the method is found behind many of its characters', async t => {
  for (const filler of ['/', '/l', '2', '\\\\', '/2']) {
    const note = filler.repeat(2_000)
    for (const name of ['tools/list', 'tools\\/list', 'tools\\u002flist', 'tools/l\\u0069st']) {
      t.ok(asksForList(Buffer.from(`{"note":"${note}","method":"${name}"}`)), `${filler} ${name}`)
      t.ok(asksForList(Buffer.from(`{"method":"${name}","note":"${note}"}`)), `${name} ${filler}`)
    }
  }
})

t.test('the name of the method is found where two parts of a search meet', async t => {
  const missed: string[] = []
  for (const border of [15_360, 65_536]) {
    for (let before = border - 40; before <= border + 2; before++) {
      for (const name of ['tools/list', 'tools\\/l\\u0069st']) {
        const body = Buffer.from(`{${'x'.repeat(before - 1)}"${name}"${'x'.repeat(border)}`)
        if (!asksForList(body) || !new ListSearch().finds(body)) missed.push(`${name} behind ${before}`)
      }
    }
  }
  t.strictSame(missed, [])
})

t.test('a long body is searched and read in turns', async t => {
  const filler = 'x'.repeat(8_388_608)
  const values = Array.from({ length: 9_000 }, (_, at) => `"k${at}":"${'y'.repeat(100)}"`)
  for (const [text, asks] of [
    [`{"a":"${filler}"}`, false],
    [`{"a":"${filler}","method":"tools/list"}`, true],
    [`{"method":"tools/list","params":{${values}}}`, true],
    [`{"method":"tools/call","params":{"name":"tools/list",${values}}}`, false],
  ] as const) {
    const question = new ListQuestion(Buffer.from(text))
    let turns = 1
    let most = 0
    for (; ; turns++) {
      const budget = { left: 4_096 }
      const isDone = question.advance(budget)
      most = Math.max(most, 4_096 - budget.left)
      if (isDone) break
    }
    t.equal(question.asks, asks)
    t.ok(turns > 8, `${turns} turns`)
    t.ok(most < stepsPerTurn, `a turn of ${most} steps`)
  }
})

t.test('a body that streams is searched across its pieces', async t => {
  const piece = fc.constantFrom(
    '"',
    'tools',
    '/',
    'list',
    '\\u002f',
    '\\',
    't',
    'o',
    ' ',
    '{',
    '"tools/list"',
    'x'.repeat(70),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), fc.nat(9), (pieces, size) => {
      const text = Buffer.from(`{${pieces.join('')}`)
      const search = new ListSearch()
      let found = false
      for (let at = 0; at < text.length; at += size + 1) found = search.finds(text.subarray(at, at + size + 1)) || found
      return found === new ListSearch().finds(text)
    }),
    { numRuns: runs(8_000) },
  )
  for (const text of ['--x\r\n"tools/list"', 'a="tools/list"']) t.notOk(new ListSearch().finds(Buffer.from(text)), text)
  const late = new ListSearch()
  t.notOk(late.finds(Buffer.from('\n ')))
  t.ok(late.finds(Buffer.from('[{"method":"tools/list"}]')))
})
