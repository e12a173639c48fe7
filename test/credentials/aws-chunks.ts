/** Bodies of S3 in signed chunks, cut in any way. */
import { Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { chunkedLength, contentOf, withoutChunkFields } from '../../src/credentials/aws-chunks.ts'

const signature = `;chunk-signature=${'ab'.repeat(32)}`
const chunk = (content: string) => `${content.length.toString(16)}${signature}\r\n${content}\r\n`
const end = `0${signature}\r\n\r\n`

async function read(body: Readable | Buffer, length: number): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of contentOf(body, length)) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

t.test('the content of any chunks, in any pieces, is what was put in', async t => {
  const contents = fc.array(fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' }), { maxLength: 5 })
  const cuts = fc.array(fc.nat({ max: 900 }), { maxLength: 20 })
  const property = fc.asyncProperty(contents, cuts, async (contents, cuts) => {
    const bytes = Buffer.from(contents.map(chunk).join('') + end, 'latin1')
    const at = [0, ...cuts.map(cut => cut % bytes.length).sort((a, b) => a - b), bytes.length]
    const pieces = at.slice(1).map((to, i) => bytes.subarray(at[i], to))
    const content = contents.join('')
    return (await read(Readable.from(pieces), content.length)) === content
  })
  await t.resolves(fc.assert(property, { numRuns: 100 }))
})

t.test('other forms are errors', async t => {
  const cases: [string, number, string][] = [
    [`${chunk('abc')}${end}`, 4, 'less than announced'],
    [`${chunk('abc')}${end}`, 2, 'more than announced'],
    [chunk('abc'), 3, 'no last chunk'],
    ['', 0, 'nothing'],
    [`3${signature}\r\nabcd\r\n${end}`, 3, 'no end of the chunk'],
    [`3${signature}\nabc\r\n${end}`, 3, 'a line feed alone'],
    [`-3${signature}\r\nabc\r\n${end}`, 3, 'a sign'],
    [`3;other=1\r\nabc\r\n${end}`, 3, 'another extension'],
    [`${'0'.repeat(200)}3\r\nabc\r\n${end}`, 3, 'a long line'],
    [`${end}${'x'.repeat(9_000)}`, 0, 'trailers without end'],
  ]
  for (const [body, length, why] of cases) {
    await t.rejects(read(Buffer.from(body), length), { name: 'MalformedBodyError' }, why)
  }
})

t.test('a client that leaves ends the content', async t => {
  const source = new Readable({ read() {} })
  const content = contentOf(source, 10)
  source.destroy()
  await t.rejects(async () => {
    for await (const _ of content);
  }, /Premature close/)
})

t.test('the length stands in one field of digits, and the fields of the chunks go', async t => {
  const digest = ['X-Amz-Content-SHA256', 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD']
  const of = (...lengths: string[]) =>
    chunkedLength([...digest, ...lengths.flatMap(length => ['x-amz-decoded-content-length', length])])
  t.strictSame([of('7'), of(), of('7', '8'), of('7a'), of('-7')], [7, undefined, undefined, undefined, undefined])
  t.equal(chunkedLength(['x-amz-content-sha256', 'UNSIGNED-PAYLOAD', 'x-amz-decoded-content-length', '7']), undefined)
  const fields = [
    ...digest,
    'X-Amz-Trailer',
    'x',
    'Content-Encoding',
    'AWS-Chunked',
    'content-encoding',
    'gzip, aws-chunked',
  ]
  t.strictSame(withoutChunkFields([...fields, 'X-Amz-Acl', 'private']), [
    'content-encoding',
    'gzip',
    'X-Amz-Acl',
    'private',
  ])
})
