import t from 'tap'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'

// The thread was let go when its last call was answered, and the process ended before the file was closed.
t.test('a store that is closed with a call under way answers it and keeps the process until it is closed', async t => {
  const store = await openSqliteStore({ directory: testdir(t) })
  const call = store.ping()
  await store.close()
  await t.resolves(call)
})
