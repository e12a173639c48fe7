/** The readers of bodies, without a browser: what they set out is exactly what is there. */
import t from 'tap'
import { bytesInTurns } from '../../src/console/body/bytes.ts'
import { readJson, readJsonInTurns } from '../../src/console/body/json.ts'
import { type ReadBody, readBodyInTurns, readJsonOf, readLong, readShownBody } from '../../src/console/body/kind.ts'
import { findMatches, mostMatches } from '../../src/console/body/matches.ts'
import { partsIn } from '../../src/console/body/multipart.ts'
import { pictureOf } from '../../src/console/body/picture.ts'

const type = 'multipart/form-data; boundary="a b"'
const lines = (...list: readonly string[]) => Buffer.from(list.join('\r\n'))

t.test('parts are read with their header fields and their bytes', async t => {
  const body = lines(
    ...[
      'before',
      '--a b',
      'Content-Disposition: form-data; name="x"',
      ' ; y=z',
      '',
      'one',
      '-- a b',
      'two',
      '--a b \t',
      '',
    ],
    ...['\u00e4', '--a b--', 'behind'],
  )
  const read = partsIn(body, type)
  t.type(read, 'object')
  if (typeof read === 'string') return
  const { parts, around } = read
  t.strictSame(
    parts.map(({ content: { from, to } }) => body.subarray(from, to).toString()),
    ['one\r\n-- a b\r\ntwo', '\u00e4'],
  )
  t.equal(parts[0]?.name, 'x')
  t.strictSame(parts[0]?.headers, [['Content-Disposition', 'form-data; name="x" ; y=z']])
  t.strictSame(
    around.map(({ from, to }) => body.subarray(from, to).toString()),
    ['before', 'behind'],
  )
})

t.test('T08 what servers read in other ways is not set out as parts', async t => {
  for (const [body, given, why] of [
    [lines('--a b', '', 'x\n--a b', '', 'y', '--a b--'), type, /other than CRLF/],
    [lines('--a b', '', 'x\r--a b', '', 'y', '--a b--'), type, /other than CRLF/],
    [lines('--a b', '', 'x', '--a bc', '', 'y', '--a b--'), type, /goes on behind the boundary/],
    [lines('--a b', '', 'x', `--a b${' '.repeat(90)}A: b`, '', 'y', '--a b--'), type, /goes on behind the boundary/],
    [lines('--a b', '', 'x', '--a b--y'), type, /goes on behind the boundary/],
    [lines('--a b', 'A: b', '', '--a b--'), type, /header of a part/],
    [lines('--a b', 'A: b\nB: c', '', 'x', '--a b--'), type, /header of a part/],
    ...[
      'form-data; filename="; name=x"; name="y"; name="z"',
      'form-data; name="x\nContent-Disposition: form-data; name=y"',
      'form-data; name="x"; name*=utf-8\'\'y',
      'form-data; name=x y',
      'form-data; name="x',
      'form-data; name="x"\r\nContent-Disposition: form-data; name="y"',
    ].map(
      one => [lines('--a b', `Content-Disposition: ${one}`, '', 'x', '--a b--'), type, /header of a part/] as const,
    ),
    [lines('--a b', '', 'x'), type, /no end/],
    [lines('nothing'), type, /no part with this boundary/],
    [lines('--a b', 'no colon', '', 'x', '--a b--'), type, /header of a part/],
    [lines('--a b', 'x', '--a b--'), type, /header of a part/],
    [
      lines('--a b', ...Array.from({ length: 1_001 }, () => ['', 'x', '--a b']).flat(), '--'),
      type,
      /1000 parts|no end/,
    ],
    [lines('--a b'), 'multipart/form-data', /no single boundary/],
    [lines('--x', '', 'y', '--x--'), 'multipart/form-data; boundary=x; boundary=y', /no single boundary/],
    [lines('--x', '', 'y', '--x--'), 'multipart/form-data; a="; boundary=x"; boundary=y', /no part with this boundary/],
  ] as const) {
    t.match(partsIn(body, given), why)
  }
})

t.test('T08 a name within another parameter is not the name of the part, and each name of a file is told', async t => {
  const head = `Content-Disposition: form-data; note="; name=x"; name=y; filename="a.txt"; filename*=utf-8''b.exe`
  const read = partsIn(lines('--a b', head, '', 'x', '--a b--', '', ' '), type)
  t.match(read, { parts: [{ name: 'y', files: ['a.txt', "utf-8''b.exe"] }], around: [{}] })
})

t.test('pictures are known by their first bytes, with their size', async t => {
  const of = (text: string) => pictureOf(Buffer.from(text.padEnd(40, '\0'), 'latin1'))
  t.strictSame(of('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\0\x02'), { type: 'image/png', width: 256, height: 2 })
  t.strictSame(of('GIF89a\x03\0\x04\0'), { type: 'image/gif', width: 3, height: 4 })
  t.strictSame(of('\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\0\x06'), {
    type: 'image/jpeg',
    width: 6,
    height: 5,
  })
  t.strictSame(of('RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x07\0\0\x08\0\0'), { type: 'image/webp', width: 8, height: 9 })
  t.strictSame(of('RIFF\0\0\0\0WEBPVP8L\0\0\0\0/\x07\x40\0\0'), { type: 'image/webp', width: 8, height: 2 })
  for (const other of ['<svg xmlns="x">', '\xff\xd8\xff\xe0\0\x04', 'RIFF\0\0\0\0WEBPXXXX', ''])
    t.equal(of(other), undefined)
})

t.test('base64 that is decoded in turns gives the same bytes', async t => {
  for (const length of [0, 1, 786_431, 786_432, 786_433, 2_000_001]) {
    const bytes = Buffer.alloc(length, 'a\u00e4\0z')
    t.ok(bytes.equals(await bytesInTurns(bytes.toString('base64'))), `${length} bytes`)
  }
})

t.test('JSON that is read in turns is the same', async t => {
  const text = JSON.stringify(
    Array.from({ length: 20_000 }, (_, index) => ({ index, a: { b: [index, 'x'] }, 'c"': null })),
  )
  t.equal(JSON.stringify(await readJsonInTurns(text)), JSON.stringify(readJson(text)))
  const doubled = new Set<string>()
  const many = `{${Array.from({ length: 30 }, (_, index) => `"m${index % 29}":1`).join(',')},"few":{"a":1,"a":2}}`
  t.match(readJson(many, doubled), { kind: 'object' })
  t.strictSame([...doubled], ['m0', 'a'])
  for (const bad of ['', '[', '{"a"', '{"a":1', '[1,]', '{"a":1,}', '[1}', '{"a":1]', '1 2', '{1:2}', '\u00a01']) {
    t.equal(readJson(bad), 'invalid', bad)
  }
  t.equal(readJson('['.repeat(101) + ']'.repeat(101)), 'deep')
  t.match(readJson('['.repeat(100) + ']'.repeat(100)), { kind: 'list' })
  t.equal(readJson(`[${'1,'.repeat(1_000_000)}1]`), 'many')
})

t.test('a long body that is shown is not read again to be compared', async t => {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => ({ index, note: 'x'.repeat(60) })))
  const viewOf = () => ({
    body: Buffer.from(text).toString('base64'),
    bodyEncoding: 'base64' as const,
    bodyBytes: text.length,
    headers: { 'content-type': 'application/json' },
  })
  const view = viewOf()
  const body = (await readShownBody(view)) as ReadBody
  t.equal(await readBodyInTurns(view), body)
  const { shape } = await readLong(body)
  t.equal(shape.kind === 'json' && shape.value, await readJsonOf(body))
  const other = (await readBodyInTurns(viewOf())) as ReadBody
  t.not(other, body)
  t.strictSame(await readJsonOf(other), await readJsonOf(body))
})

t.test('matches are found whatever the case of letters, over the borders of pieces, and are bounded', async t => {
  const text = `${'x'.repeat(262_142)}Nee.dle needle`
  t.strictSame(
    (await findMatches(text, 'nEE.D')).map(({ from, to }) => text.slice(from, to)),
    ['Nee.d'],
  )
  t.equal((await findMatches('a'.repeat(5_000), 'a')).length, mostMatches)
})
