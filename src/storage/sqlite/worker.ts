/** The storage thread: the only one that touches the database, so no wait for the disk ever holds up a request. */
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { openLink } from '../../runtime/link.ts'
import { giveWay } from '../../runtime/priority.ts'
import { watchFirstThread } from '../../runtime/watchdog.ts'
import { isWrite } from '../methods.ts'
import { StoreError } from '../store.ts'
import { CallClaims } from './claims.ts'
import { Committer, read } from './commit.ts'
import { type Database, openDatabase } from './database.ts'
import type { Done, StorageCall, StorageCalls, StorageNews, StorageReply, WorkerOptions } from './protocol.ts'

const port = parentPort
if (port === null) throw new Error('cannot happen: worker.ts runs as a worker only')

/** Calls in one commit: bounds how long the first of them waits for the last. */
const maxBatch = 512
/** Reads answered in one message: each message costs both threads more than a small read does. */
const readsTogether = 16
/** How often the files are looked at while nothing is written, milliseconds. */
const lookMs = 1_000

const options: WorkerOptions = workerData
let { subscriptions } = options
let served: ReturnType<typeof serve> | undefined
giveWay()
if (options.watch !== undefined) watchFirstThread(options.watch)
const main = openLink<StorageCalls, StorageNews>(port, {
  async open() {
    const database = await openDatabase(options)
    served = serve(database)
    return database.restored
  },
  async run(call) {
    if (served === undefined) throw new Error('cannot happen: the database is not open')
    return served.run(call)
  },
  async subscribe(hooks) {
    subscriptions = hooks
  },
  close: async () => served?.close(),
})

interface QueuedCall {
  readonly call: StorageCall
  readonly resolve: (done: Done) => void
  readonly reject: (error: StoreError) => void
}

function serve(database: Database) {
  const claims = new CallClaims(options.claims)
  const committer = new Committer(database, {
    claims,
    files: database.files,
    subscriptions: () => subscriptions,
    onFault: why => main.notify('fault', [why]),
  })
  const looking = setInterval(() => {
    committer.look()
    database.mark()
  }, lookMs)
  const waiting: QueuedCall[] = []
  let working: Promise<void> | undefined

  /** Gives way to the event loop before each round, so that all calls that have arrived share it. */
  async function work(): Promise<void> {
    while (waiting.length > 0) {
      await nextLoopTurn()
      const { writes = [], reads = [] } = Object.groupBy(waiting.splice(0, maxBatch), ({ call }) =>
        isWrite(call) ? 'writes' : 'reads',
      )
      if (writes.length > 0) answer(writes, await committer.commit(writes.map(({ call }) => call)))
      while (reads.length > 0) {
        const together = reads.splice(0, readsTogether)
        const replies: StorageReply[] = []
        for (const { call } of together) replies.push(await read(database.db, call, claims))
        answer(together, replies)
      }
    }
    working = undefined
  }

  return {
    run(call: StorageCall): Promise<Done> {
      return new Promise((resolve, reject) => {
        waiting.push({ call, resolve, reject })
        working ??= work()
      })
    },
    async close(): Promise<void> {
      await working
      clearInterval(looking)
      database.close()
    },
  }
}

function answer(asked: readonly QueuedCall[], replies: readonly StorageReply[]): void {
  for (const [index, { resolve, reject }] of asked.entries()) {
    const reply = replies[index] ?? { failure: 'no reply' }
    if ('failure' in reply) reject(new StoreError(reply.failure))
    else resolve(reply)
  }
}
