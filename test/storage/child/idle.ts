/** Opens the store in argv[2], uses it once and never closes it. */
import { openSqliteStore } from '../../../src/storage/sqlite/open.ts'

const store = await openSqliteStore({ directory: process.argv[2] ?? '' })
console.log((await store.agents.all()).length)
