/** The storage thread: the only one that touches the database, so no wait for the disk ever holds up a request. */
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { giveWay } from '../../priority.ts'
import { Claims } from './claims.ts'
import { Committer, isWrite, read } from './commit.ts'
import { type Database, openDatabase } from './database.ts'
import type { Call, Message, Reply, Request, WorkerOptions } from './protocol.ts'

const port = parentPort
if (port === null) throw new Error('cannot happen: worker.ts runs as a worker only')

/** Calls in one commit: bounds how long the first of them waits for the last. */
const maxBatch = 512
/** Reads answered in one message: each message costs both threads more than a small read does. */
const readsTogether = 16
/** How often the files are looked at while nothing is written, milliseconds. */
const lookMs = 1_000

const options: WorkerOptions = workerData
giveWay()
try {
  const database = await openDatabase(options)
  serve(database)
  if (database.restored !== undefined) send({ restored: database.restored })
  send('ready')
} catch (error) {
  send({ refused: error instanceof Error ? error.message : String(error) })
}

function serve(database: Database): void {
  const claims = new Claims(options.claims)
  const committer = new Committer(database, {
    claims,
    misplaced: database.misplaced,
    onFault: fault => send({ fault }),
  })
  const looking = setInterval(() => {
    committer.look()
    database.mark()
  }, lookMs)
  const waiting: Request[] = []
  let working = false

  /** Gives way to the event loop before each round, so that all calls that have arrived share it. */
  async function work(): Promise<void> {
    working = true
    while (waiting.length > 0) {
      await nextLoopTurn()
      const requests = waiting.splice(0, maxBatch)
      const calls = requests.filter(request => request !== 'close')
      const writes = calls.filter(isWrite)
      if (writes.length > 0) send(await committer.commit(writes))
      const reads = calls.filter(call => !isWrite(call))
      while (reads.length > 0) send(await all(reads.splice(0, readsTogether)))
      if (requests.includes('close')) close()
    }
    working = false
  }

  async function all(calls: readonly Call[]): Promise<Reply[]> {
    const replies: Reply[] = []
    for (const call of calls) replies.push(await read(database.db, call, claims))
    return replies
  }

  function close(): void {
    clearInterval(looking)
    database.close()
    port?.close()
  }

  port?.on('message', (request: Request) => {
    waiting.push(request)
    if (!working) void work()
  })
}

function send(message: Message): void {
  port?.postMessage(message, Array.isArray(message) ? message.flatMap(bytesOf) : [])
}

/** Bytes read from the database are ours alone: they are handed over, not copied. */
function bytesOf(reply: Reply): ArrayBuffer[] {
  return 'value' in reply && reply.value instanceof Uint8Array ? [reply.value.buffer as ArrayBuffer] : []
}
