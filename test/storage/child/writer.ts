/** Writes to the store in argv[2] until it is killed, and prints each write after it was acknowledged. */
import { openSqliteStore } from '../../../src/storage/sqlite/open.ts'
import { agent, approve, deny, entry, suspend } from '../contract/samples.ts'

const [, , directory = '', life = ''] = process.argv
const store = await openSqliteStore({ directory })

async function write(stream: number): Promise<void> {
  for (let n = 0; ; n++) {
    const id = `${life}-${stream}-${n}`
    await suspend(store, id)
    console.log(`Pending ${id}`)
    if (n % 2 === 0) await approve(store, id)
    else await deny(store, id)
    console.log(`${n % 2 === 0 ? 'Approved' : 'Denied'} ${id}`)
    await store.agents.insert(agent(id), 'hash', entry('agent.register', { subject: id }))
    console.log(`agent ${id}`)
    if (n % 3 === 0) await store.hitl.prune(0, 10)
  }
}

await Promise.all([0, 1, 2, 3].map(write))
