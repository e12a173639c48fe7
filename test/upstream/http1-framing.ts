/** Threats T21, T33 of SECURITY.md: however an answer comes, it is the same, and a cut one is none. */
import fc from 'fast-check'
import t from 'tap'
import { runs } from '../fixtures/runs.ts'
import { openScripted, requestOf, Told } from '../fixtures/upstream.ts'

interface Answer {
  readonly what: string
  readonly method: string
  readonly bytes: string
  readonly body: string
  readonly trailers: readonly string[]
  /** It ends with the connection alone. */
  readonly closes: boolean
}

const body = fc.oneof(
  fc.string({ maxLength: 40 }).map(text => Buffer.from(text).toString('latin1')),
  fc.constantFrom('', '\r\n\r\n', '0\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 'x'.repeat(3_000)),
)

function chunked(text: string, size: number, trailers: string): string {
  let out = ''
  for (let at = 0; at < text.length; at += size) {
    const chunk = text.slice(at, at + size)
    out += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
  }
  return `${out}0\r\n${trailers}\r\n`
}

const ok = 'HTTP/1.1 200 OK\r\nX: y\r\n'
const plain = { method: 'GET', trailers: [], closes: false }

const final: fc.Arbitrary<Answer> = fc.oneof(
  fc.constant({ ...plain, what: 'none', bytes: `${ok}Content-Length: 0\r\n\r\n`, body: '' }),
  fc.constant({ ...plain, what: 'HEAD', method: 'HEAD', bytes: `${ok}Content-Length: 9\r\n\r\n`, body: '' }),
  fc.constant({ ...plain, what: '204', bytes: 'HTTP/1.1 204 No Content\r\n\r\n', body: '' }),
  fc.constant({ ...plain, what: '304', bytes: 'HTTP/1.1 304\r\nContent-Length: 9\r\n\r\n', body: '' }),
  body.map(text => ({
    ...plain,
    what: 'length',
    bytes: `${ok}Content-Length: ${text.length}\r\n\r\n${text}`,
    body: text,
  })),
  fc.tuple(body, fc.integer({ min: 1, max: 50 }), fc.boolean()).map(([text, size, more]) => ({
    ...plain,
    what: 'chunked',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n${chunked(text, size, more ? 'A: b\r\n' : '')}`,
    body: text,
    trailers: more ? ['A', 'b'] : [],
  })),
  body.map(text => ({ ...plain, what: 'close', bytes: `${ok}\r\n${text}`, body: text, closes: true })),
)

/** Such an answer names the length of a body that does not come: its connection is not used again. */
const announced = new Set(['HEAD', '304'])

const longHint = `103 Early Hints\r\nLink: </${'a'.repeat(1_990)}>`
const hints = ['100 Continue', '102', '103 Early Hints\r\nLink: </a>', longHint]
const interim = fc.array(fc.constantFrom(...hints), { maxLength: 3 })
const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })

function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map(share => Math.floor(share * text.length)).sort((a, b) => a - b), text.length]
  return at.slice(1).map((to, i) => text.slice(at[i], to))
}

function begin(method: string) {
  const upstream = openScripted()
  const told = new Told()
  upstream.connection.dispatch(requestOf({ method }), told, told)
  return { ...upstream, told }
}

t.test('an answer split at any bytes is the same answer, whatever frames it and comes before it', async t => {
  await fc.assert(
    fc.asyncProperty(
      final,
      interim,
      shares,
      async ({ what, method, bytes, body, trailers, closes }, before, places) => {
        const { told, say, end, connection } = begin(method)
        const heads = before.map(head => `HTTP/1.1 ${head}\r\n\r\n`).join('')
        for (const piece of cut(heads + bytes, places)) say(piece)
        if (closes && told.ends > 0) throw new Error('over before its end')
        if (closes) end()
        await told.over
        const same = told.text === body && told.trailers?.join() === trailers.join() && told.ends === 1
        if (!same) throw new Error(`came out as ${told.outcome} ${told.trailers}`)
        if (told.interim.join() !== before.map(head => head.slice(0, 3)).join()) throw new Error('interim answers')
        if (connection.destroyed !== (closes || announced.has(what))) throw new Error('the connection')
        connection.destroy()
      },
    ),
    { numRuns: runs(1_000) },
  )
  t.pass('holds')
})

t.test('an answer that is cut anywhere before its end is an error, not a shorter answer', async t => {
  const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  const cuttable = final.filter(({ closes }) => !closes)
  await fc.assert(
    fc.asyncProperty(cuttable, share, shares, async ({ method, bytes }, where, places) => {
      const { told, say, end, connection } = begin(method)
      for (const piece of cut(bytes.slice(0, Math.floor(where * bytes.length)), places)) say(piece)
      if (told.ends > 0) throw new Error('over before its end')
      end()
      if ((await told.over).outcome !== 'reset' || !connection.destroyed) throw new Error(told.outcome)
    }),
    { numRuns: 500 },
  )
  t.pass('holds')
})

t.test('an answer with bytes behind it comes whole, and its connection is used no more', async t => {
  const behind = fc.constantFrom('\r\n', '\0', 'x', 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison')
  await fc.assert(
    fc.asyncProperty(
      final.filter(({ closes }) => !closes),
      behind,
      shares,
      async (answer, rest, places) => {
        const { told, say, connection } = begin(answer.method)
        for (const piece of cut(answer.bytes + rest, places)) say(piece)
        await told.over
        if (told.text !== answer.body || told.ends !== 1 || !connection.destroyed) throw new Error(told.outcome)
      },
    ),
    { numRuns: 500 },
  )
  t.pass('holds')
})

t.test('whatever comes instead of an answer, it ends in one call, and never twice', async t => {
  const piece = fc.oneof(
    fc.constantFrom(ok, '\r\n', '\n', 'Content-Length: 3', 'Transfer-Encoding: chunked', '3\r\nabc\r\n', '0\r\n\r\n'),
    fc.constantFrom('HTTP/1.1 100 \r\n\r\n', 'HTTP/1.1 101 \r\n\r\n', ': ', '\0'),
    fc.string({ maxLength: 5 }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async pieces => {
      const { told, say, end, connection } = begin('GET')
      for (const text of pieces) say(text)
      end()
      await told.over
      if (told.ends !== 1 || !connection.destroyed) throw new Error(`${told.ends} ends`)
    }),
    { numRuns: runs(1_000) },
  )
  t.pass('holds')
})

const heads: Readonly<Record<string, string>> = {
  'a change of protocol': 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  'an interim answer behind which the connection is said to close': 'HTTP/1.1 103 x\r\nConnection: close\r\n\r\n',
  'an interim answer in HTTP/1.0': 'HTTP/1.0 100 Continue\r\n\r\n',
  'another protocol': 'SSH-2.0-OpenSSH_9.9\r\n',
  'a head that is too large': `${ok}${'X: y\r\n'.repeat(1_000)}\r\n`,
  'a head without end': ok + 'a'.repeat(5_000),
  'an interim head that is too large': `HTTP/1.1 100 Continue\r\nX: ${'y'.repeat(5_000)}\r\n\r\n`,
  'trailers that are too large': `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(1_000)}\r\n`,
}

for (const [what, bytes] of Object.entries(heads)) {
  t.test(`${what} is malformed, before the connection ends`, async t => {
    const { told, say, connection } = begin('GET')
    say(bytes)
    t.equal((await told.over).outcome, 'malformed')
    t.ok(connection.destroyed)
  })
}

t.test('a body is passed on as it was read, although the memory is used again', async t => {
  const { told, say, connection } = begin('GET')
  const text = Array.from({ length: 200_000 }, (_, i) => String.fromCharCode(i % 251)).join('')
  say(`${ok}Content-Length: ${text.length}\r\n\r\n`)
  say(text)
  t.ok((await told.over).text === text)
  t.notOk(connection.destroyed)
  connection.destroy()
})
