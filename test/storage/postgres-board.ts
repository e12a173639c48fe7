import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { createSchema } from '../fixtures/postgres.ts'

t.test('gateways see once what the others post, from their start on', async t => {
  const settings = await createSchema(t)
  const [a, b] = [await openPostgresStore({ settings }), await openPostgresStore({ settings })]
  t.teardown(() => Promise.all([a.close(), b.close()]))
  t.strictSame(await a.board.exchange('before the first look of b'), [])
  t.strictSame(await b.board.exchange('b1'), [])
  t.strictSame(await a.board.exchange('a2'), ['b1'])
  t.strictSame(await a.board.exchange('a3'), [])
  t.strictSame(await b.board.exchange(undefined), ['a2', 'a3'])
  t.strictSame(await a.board.exchange(undefined), [])
})

t.test('posts are forgotten: old ones, and those of a gateway that is gone', async t => {
  const settings = await createSchema(t)
  const [a, b] = [await openPostgresStore({ settings }), await openPostgresStore({ settings })]
  t.teardown(() => Promise.all([a.close(), b.close()]))
  const posts = async () => Number((await settings.admin.query('select count(*) as n from notes')).rows[0].n)
  for (let post = 1; post <= 20; post++) await a.board.exchange(`a${post}`)
  t.equal(await posts(), 15)
  await a.close()
  await b.board.exchange('b1')
  t.equal(await posts(), 1)
})
