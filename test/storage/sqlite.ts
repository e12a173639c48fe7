import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { subscriptions } from './contract/deliveries.ts'
import { tables } from './contract/samples.ts'
import { contract } from './contract.ts'

const directory = testdir(t)
const store = await openSqliteStore({ directory, subscriptions })
t.teardown(() => store.close())

function opened<T>(work: (file: DatabaseSync) => T): T {
  const file = new DatabaseSync(join(directory, 'gateway.db'))
  // Copying the log into gateway.db would count as overwriting it.
  file.exec('pragma wal_autocheckpoint = 0')
  const result = work(file)
  file.close()
  return result
}

// One store for all, emptied in between: starting a thread for each would take most of the time.
contract(
  t,
  async () => {
    opened(file => {
      for (const table of tables) file.exec(`delete from ${table}`)
    })
    return store
  },
  { other: store, query: async text => opened(file => file.prepare(text).all()), isOne: true },
)
