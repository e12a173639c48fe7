import t from 'tap'
import { openSqliteStore } from '../../src/storage/sqlite/open.ts'
import { contract } from './contract.ts'

contract(t, async t => {
  const store = await openSqliteStore({ directory: t.testdir() })
  t.teardown(() => store.close())
  return store
})
