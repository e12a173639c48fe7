import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import t from 'tap'
import type { OpenCall } from '../../src/management/call.ts'
import { listReply } from '../../src/management/list.ts'

/** Of a client that says nothing about codings, or takes gzip. */
const plain = { req: { headers: {} } } as OpenCall
const zips = { req: { headers: { 'accept-encoding': 'gzip' } } } as OpenCall

async function* items(count: number, fault?: Error) {
  for (let index = 0; index < count; index++) yield [JSON.stringify({ index, text: 'x'.repeat(1_000) }), '2']
  yield []
  if (fault !== undefined) throw fault
}

const parsed = async (count: number) => (await Array.fromAsync(items(count))).flat().map(item => JSON.parse(item))

t.test('a short list is one text', async t => {
  for (const count of [0, 1, 3]) {
    const { status, body } = await listReply(plain, items(count))
    t.equal(status, 200)
    t.strictSame(JSON.parse(body as string), await parsed(count))
  }
})

t.test('a long list is made as it is read', async t => {
  const { body } = await listReply(plain, items(1_000))
  t.ok(body instanceof Readable)
  t.strictSame(JSON.parse(await text(body as Readable)), await parsed(1_000))
})

t.test('a fault at the start is a rejection, a later one breaks off', async t => {
  await t.rejects(listReply(plain, items(3, new TypeError('gone'))), { message: 'gone' })
  const { body } = await listReply(plain, items(1_000, new TypeError('gone')))
  await t.rejects(text(body as Readable), { message: 'gone' })
  const { body: zipped } = await listReply(zips, items(1_000, new TypeError('gone')))
  await t.rejects(text(zipped as Readable), { message: 'gone' })
})

t.test('a compressed list is the same list', async t => {
  const { body } = await listReply(zips, items(1_000))
  t.strictSame(JSON.parse(await text((body as Readable).pipe(createGunzip()))), await parsed(1_000))
})
