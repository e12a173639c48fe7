/** T78: the usage in answers, whatever is beside it. */
import fc from 'fast-check'
import t from 'tap'
import type { Format } from '../../src/llm/formats.ts'
import type { Usage } from '../../src/llm/usage.ts'
import { type Division, divisionOf, type UsageFound, UsageReader } from '../../src/llm/usage-reader.ts'
import { anthropicStream, type ModelAnswer, modelAnswers } from '../fixtures/model-answers.ts'
import { runs } from '../fixtures/runs.ts'

const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }

function read({ format, type }: Pick<ModelAnswer, 'format' | 'type'>, pieces: readonly Buffer[], isWhole = true) {
  const division = divisionOf(type)
  if (division === undefined) throw new Error(`no division of ${type}`)
  const reader = new UsageReader(format, division)
  for (const piece of pieces) {
    // The memory of a piece is used again, as in the gateway.
    const copy = Buffer.from(piece)
    reader.see(copy)
    copy.fill(0x7b)
  }
  return reader.end(isWhole)
}

const expected = ({ expected: told, model, isPartial = told === undefined }: ModelAnswer): UsageFound => ({
  usage: told === undefined ? undefined : { ...none, ...told },
  isPartial,
  model,
})

/** Whether the model may have thought more than the pieces show, which were cut off. */
function mayThink(format: Format, division: Division, pieces: readonly (string | Buffer)[]): boolean {
  const reader = new UsageReader(format, division)
  for (const piece of pieces) reader.see(Buffer.from(piece))
  reader.end(false)
  return reader.mayThink
}

t.test('T77 a stream of Anthropic may think until it has content, and where it has signs of thoughts', async t => {
  const events = anthropicStream(4_000)
    .toString()
    .split(/(?<=\n\n)/)
  const [start = '', ...rest] = events
  const isThinking = (...pieces: string[]) => mayThink('anthropic', 'events', pieces)
  t.ok(isThinking(), 'nothing came')
  t.ok(isThinking(start))
  for (const count of [3, 10, 1_000]) t.notOk(isThinking(...events.slice(0, count)), `${count} events of text`)
  const padded = start.replace('{', `{"pad":"${'x'.repeat(1_500)}",`)
  const ping = 'event: ping\ndata: {"type": "ping"}\n\n'
  for (const type of ['thinking', 'redacted_thinking']) {
    const block = `event: content_block_start\ndata: ${JSON.stringify({ type: 'content_block_start', content_block: { type } })}\n\n`
    for (const first of [start, padded]) {
      t.ok(isThinking(first, ping, ping, block), type)
      t.ok(isThinking(first, ping, block, ...rest.slice(0, 1_000)), 'however much comes behind it')
      t.ok(isThinking(first, ...rest.slice(0, 500), block, ...rest.slice(500, 1_000)), 'and before it')
    }
  }
  t.notOk(isThinking(padded, ping, ...rest.slice(0, 1_000)))
  t.notOk(isThinking(start, ...rest.slice(0, 3), JSON.stringify({ text: 'the type "thinking"' })), 'a text says so')
})

t.test('T77 a stream of Converse may think in the same way, one of InvokeModel always, others never', async t => {
  const frame = (member: string) =>
    `:event-type\x07\x00\x11contentBlockDelta{"contentBlockIndex":0,"delta":{"${member}":{}}}`
  const isThinking = (...pieces: string[]) => mayThink('bedrock', 'frames', pieces)
  t.ok(isThinking(':event-type messageStart{"role":"assistant"}'))
  t.notOk(isThinking(...Array(500).fill(frame('text'))))
  t.ok(isThinking(frame('reasoningContent'), ...Array(500).fill(frame('text'))))
  t.ok(mayThink('bedrock-invoke', 'frames', [frame('text')]))
  t.notOk(mayThink('ollama', 'lines', ['{"message":{"thinking":"x"}}\n']))
})

/** Where to begin, so that each run looks at other places. */
const anyOf = (step: number): number => 1 + Math.floor(Math.random() * step)

const same = (found: UsageFound, wanted: UsageFound): boolean => JSON.stringify(found) === JSON.stringify(wanted)

for (const answer of modelAnswers) {
  const { name, bytes } = answer
  const wanted = expected(answer)

  t.test(`${name}: the usage and the model are read`, async t => {
    t.strictSame(read(answer, [bytes]), wanted)
  })

  t.test(`${name}: cut at any byte, it says the same`, async t => {
    const step = bytes.length > 50_000 ? 997 : runs(1, 31)
    const wrong: number[] = []
    for (let at = anyOf(step); at < bytes.length; at += step) {
      if (!same(read(answer, [bytes.subarray(0, at), bytes.subarray(at)]), wanted)) wrong.push(at)
    }
    t.strictSame(wrong, [])
  })

  t.test(`${name}: in pieces of any length, it says the same`, async t => {
    const wrong: number[] = []
    for (const most of [1, 3, 17, 200, 1_500, 9_000, 70_000]) {
      if (bytes.length / most > 100_000) continue
      const pieces: Buffer[] = []
      for (let at = 0; at < bytes.length; at += pieces.at(-1)!.length) {
        pieces.push(bytes.subarray(at, at + 1 + Math.floor(Math.random() * most)))
      }
      if (!same(read(answer, pieces), wanted)) wrong.push(most)
    }
    t.strictSame(wrong, [])
  })
}

t.test('the place at which bytes leave the buffer changes nothing', async t => {
  const wrong: string[] = []
  for (const answer of modelAnswers) {
    const { bytes, type, format, name } = answer
    // The beginning of an answer in events of Anthropic must be in the buffer, as it is in life.
    const isEvents = type.startsWith('text/')
    if (bytes.length > 120_000 || type.includes('amazon') || (isEvents && format === 'anthropic')) continue
    const step = runs(37, 1_110)
    for (let filler = anyOf(step); filler < 17_000; filler += step) {
      const whole = Buffer.concat([Buffer.from(isEvents ? `: ${'x'.repeat(filler)}\n\n` : ' '.repeat(filler)), bytes])
      const pieces: Buffer[] = []
      for (let at = 0; at < whole.length; at += 211) pieces.push(whole.subarray(at, at + 211))
      const { usage } = read(answer, pieces)
      if (JSON.stringify(usage) !== JSON.stringify(expected(answer).usage)) wrong.push(`${name} behind ${filler}`)
    }
  }
  t.strictSame(wrong, [])
})

t.test('a usage in the arguments of a tool does not count when the stream is cut behind it', async t => {
  const forged = modelAnswers.find(({ name }) => name === 'no usage, forged in a stream of gemini')!
  const line = forged.bytes.subarray(0, forged.bytes.indexOf('}}') + 2)
  t.strictSame(read(forged, [line], false).usage, undefined)
})

t.test('a stream that is cut has no more usage than it showed', async t => {
  const wrong: string[] = []
  for (const answer of modelAnswers) {
    const { bytes, type, expected: told } = answer
    if (!type.startsWith('text/') || bytes.length > 60_000) continue
    const step = runs(3, 97)
    for (let at = anyOf(step); at < bytes.length; at += step) {
      const { usage, isPartial } = read(answer, [bytes.subarray(0, at)], false)
      const tooMuch = (Object.keys(none) as (keyof Usage)[]).some(key => (usage?.[key] ?? 0) > (told?.[key] ?? 0))
      const isWrong = isPartial ? tooMuch : JSON.stringify(usage) !== JSON.stringify({ ...none, ...told })
      if (isWrong) wrong.push(`${answer.name} at ${at}: ${JSON.stringify(usage)}`)
    }
  }
  t.strictSame(wrong, [])
})

t.test('a cut stream of Anthropic shows its input', async t => {
  const stream = modelAnswers.find(({ name }) => name === 'anthropic stream, cut before the end')!
  t.match(read(stream, [stream.bytes], false), { isPartial: true, usage: { input: 12, cacheRead: 18_432 } })
})

t.test('an answer without a byte shows no usage', async t => {
  const nothing = { usage: undefined, isPartial: true, model: undefined }
  t.strictSame(read({ format: 'openai', type: 'application/json' }, [], false), nothing)
})

t.test('T77 what an agent sent, and an answer repeats, is neither its usage nor its model', async t => {
  const names = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`, 'usage']))
  const usage = { prompt_tokens: 7, completion_tokens: 3 }
  const answer = { id: 'r', metadata: { model: 'cheap' }, model: 'costly', usage, user: 'usage', more: names }
  const json = JSON.stringify(answer)
  for (const [type, text] of [
    ['application/json', json],
    ['application/x-ndjson', `${json}\n`],
    ['text/event-stream', `data: {"type":"response.completed","response":${json}}\n\n`],
  ] as const) {
    t.match(read({ format: 'openai', type }, [Buffer.from(text)]), { usage: { input: 7, output: 3 }, model: 'costly' })
  }
})

t.test('T77 counts that cannot be true tell nothing: the call costs an estimate', async t => {
  const told = (more: string) => `{"usage":{"prompt_tokens":7,${more}}}`
  const lies = ['-3', '1e308', '1e999', '"9"', '{}'].map(count => told(`"completion_tokens":${count}`))
  lies.push('{"usage":{"prompt_tokens":NaN,"completion_tokens":3}}', '{"usage":{"completion_tokens":3}}')
  const usageOf = (text: string) => read({ format: 'openai', type: 'application/json' }, [Buffer.from(text)]).usage
  for (const text of lies) t.equal(usageOf(text), undefined, text)
  t.match(usageOf(told('"completion_tokens":3')), { input: 7, output: 3 })
  t.match(usageOf(told('"completion_tokens":null')), { input: 7, output: 0 }, 'embeddings write none')
  t.match(usageOf(told('"x":1},"usage":{"prompt_tokens":9,"completion_tokens":8')), { input: 9 }, 'the last counts')
})

const texts = fc.constantFrom(
  '"usage":{"prompt_tokens":1}',
  '{"usage":',
  '\\"usage\\"',
  '}}',
  '"',
  '\\',
  'usage',
  'é',
  '\n',
)
/** What a model, a tool or an agent may have written, two objects deep. */
const written = fc.letrec(tie => ({
  value: fc.oneof({ maxDepth: 4 }, texts, fc.integer(), fc.constant(null), tie('object'), fc.array(tie('value'))),
  object: fc.dictionary(fc.constantFrom('usage', 'a', 'x"usage', 'prompt_tokens'), tie('value'), { maxKeys: 4 }),
})).value
const members = fc.array(
  fc.tuple(
    fc.stringMatching(/^[a-t]{1,8}$/),
    fc.oneof(
      texts,
      written.map(value => ({ a: [value] })),
    ),
  ),
  {
    maxLength: 5,
  },
)
const counts = fc.record({
  prompt_tokens: fc.nat(1_000_000),
  completion_tokens: fc.nat(100_000),
  prompt_tokens_details: fc.constant({ cached_tokens: 0 }),
})

t.test('the reader finds what JSON.parse finds', async t => {
  const answers = fc.tuple(members, fc.option(counts, { nil: undefined }), members, fc.constantFrom(0, 2))
  fc.assert(
    fc.property(answers, fc.nat(), ([before, usage, after, indent], cut) => {
      const whole = { ...Object.fromEntries(before), ...(usage && { usage }), ...Object.fromEntries(after) }
      const bytes = Buffer.from(JSON.stringify(whole, undefined, indent))
      const told = (JSON.parse(bytes.toString()) as { usage?: typeof usage }).usage
      // Not more than so many members of the name are looked at.
      const mayMiss = bytes.toString().split('"usage"').length > 32
      const isRight = (found: Usage | undefined) =>
        told === undefined || (found === undefined && mayMiss)
          ? found === undefined
          : found?.input === told.prompt_tokens && found.output === told.completion_tokens
      // Cut at every byte, or at one.
      const step = runs(1, bytes.length + 1)
      for (let at = cut % step; at <= bytes.length; at += step) {
        const pieces = [bytes.subarray(0, at), bytes.subarray(at)]
        if (!isRight(read({ format: 'openai', type: 'application/json' }, pieces).usage)) return false
      }
      return true
    }),
    { numRuns: runs(20_000, 500) },
  )
  t.pass()
})

/** Events of streams as providers send them, of which most tell nothing. */
const streams = {
  openai: {
    first: 'data: {"model":"gpt-5","choices":[{"delta":{"role":"assistant"}}]}',
    silent: `data: {"choices":[{"delta":{"content":"${'word '.repeat(40)}"}}]}`,
    nothing: 'data: {"choices":[],"usage": null}',
    told: (n: number) => `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":${n}}}`,
    done: 'data: [DONE]',
  },
  anthropic: {
    first:
      'data: {"type":"message_start","message":{"model":"claude-5","usage":{"input_tokens":12,"output_tokens":1}}}',
    silent: `data: {"type":"content_block_delta","delta":{"text":"${'word '.repeat(40)}"}}`,
    nothing: 'event: ping\ndata: {"type":"ping"}',
    told: (n: number) => `data: {"type":"message_delta","usage":{"output_tokens":${n}}}`,
    done: 'data: {"type":"message_stop"}',
  },
} as const

t.test('events that come one by one tell the same as those that are cut', async t => {
  const kinds = fc.array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('silent', 'nothing', 'done') },
      { weight: 1, arbitrary: fc.nat(1_000) },
    ),
    { maxLength: 120, size: 'max' },
  )
  const formats = fc.constantFrom('openai', 'anthropic')
  const rests = fc.constantFrom('', 'data: {"usage":{"prompt_tokens":1,')
  fc.assert(
    fc.property(formats, kinds, fc.constantFrom('\n\n', '\r\n\r\n'), rests, (format, kinds, end, rest) => {
      const events = streams[format]
      const texts = kinds.map(kind => (typeof kind === 'number' ? events.told(kind) : events[kind]))
      const pieces = [events.first, ...texts].map(text => Buffer.from(text + end))
      if (rest !== '') pieces.push(Buffer.from(rest))
      const whole = Buffer.concat(pieces)
      const cut: Buffer[] = []
      let at = 0
      for (const { length } of pieces) {
        cut.push(whole.subarray(Math.max(0, at - 1), at + length - 1))
        at += length
      }
      cut.push(whole.subarray(at - 1))
      const type = 'text/event-stream'
      return [true, false].every(isWhole =>
        same(read({ format, type }, pieces, isWhole), read({ format, type }, cut, isWhole)),
      )
    }),
    { numRuns: runs(5_000, 200) },
  )
  t.pass()
})
