/** Opens a store, uses it and leaves it open. */
import { openPostgresStore } from '../../../src/storage/postgres/open.ts'

const store = await openPostgresStore({ settings: JSON.parse(process.argv[2] ?? '') })
console.log((await store.agents.all()).length)
