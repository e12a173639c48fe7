import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { listReply } from '../../src/management/list.ts'

async function* items(count: number, fault?: Error) {
  for (let index = 0; index < count; index++) yield [JSON.stringify({ index, text: 'x'.repeat(1_000) }), '2']
  yield []
  if (fault !== undefined) throw fault
}

const parsed = async (count: number) => (await Array.fromAsync(items(count))).flat().map(item => JSON.parse(item))

t.test('a short list is one text', async t => {
  for (const count of [0, 1, 3]) {
    const { status, body } = await listReply(items(count))
    t.equal(status, 200)
    t.strictSame(JSON.parse(body as string), await parsed(count))
  }
})

t.test('a long list is made as it is read', async t => {
  const { body } = await listReply(items(1_000))
  t.ok(body instanceof Readable)
  t.strictSame(JSON.parse(await text(body as Readable)), await parsed(1_000))
})

t.test('a fault at the start is a rejection, a later one breaks off', async t => {
  await t.rejects(listReply(items(3, new TypeError('gone'))), { message: 'gone' })
  const { body } = await listReply(items(1_000, new TypeError('gone')))
  await t.rejects(text(body as Readable), { message: 'gone' })
})
