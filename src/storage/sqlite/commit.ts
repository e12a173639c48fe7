/**
 * Group commit: calls that write and wait at the same time share one transaction, and so one wait for the disk.
 */
import { methods, type TableName } from '../methods.ts'
import { operations } from '../operations.ts'
import type { Db } from '../schema.ts'
import type { Connected } from './database.ts'
import type { Call, Reply } from './protocol.ts'

/** SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC. */
const failedSync = new Set([1034, 1290])

export function isWrite({ table, method }: Call): boolean {
  return (methods[table] as Record<string, string>)[method] === 'write'
}

export function createCommitter({ connection, db }: Connected) {
  /**
   * After a failed sync the kernel forgets the lost pages, and the next sync would succeed over them. So nothing is
   * written any more until a restart has read back what the disk really holds.
   */
  let stopped: Error | undefined

  /** Runs `calls` in one transaction. Each either holds, once this resolves, or has changed nothing. */
  async function commit(calls: readonly Call[]): Promise<Reply[]> {
    try {
      if (stopped !== undefined) throw stopped
      connection.exec('begin immediate')
    } catch (error) {
      return calls.map(call => failed(call, error))
    }
    try {
      const replies: Reply[] = []
      for (const call of calls) replies.push(await attempt(call))
      connection.exec('commit')
      return replies
    } catch (error) {
      if (connection.isTransaction) connection.exec('rollback')
      if (isFailedSync(error)) stopped = new Error('a write did not reach the disk; restart the gateway')
      return calls.length === 1 ? calls.map(call => failed(call, error)) : oneByOne(calls)
    }
  }

  /** The one that cannot be committed must not take the others with it. */
  async function oneByOne(calls: readonly Call[]): Promise<Reply[]> {
    const replies: Reply[] = []
    for (const call of calls) replies.push(...(await commit([call])))
    return replies
  }

  async function attempt(call: Call): Promise<Reply> {
    connection.exec('savepoint call')
    try {
      const reply = { id: call.id, value: await run(db, call) }
      connection.exec('release call')
      return reply
    } catch (error) {
      // Some errors, a full disk among them, make SQLite roll back all of the transaction.
      if (!connection.isTransaction) throw error
      connection.exec('rollback to call; release call')
      return failed(call, error)
    }
  }

  return commit
}

/** A call that only reads. */
export async function read(db: Db, call: Call): Promise<Reply> {
  try {
    return { id: call.id, value: await run(db, call) }
  } catch (error) {
    return failed(call, error)
  }
}

function run(db: Db, { table, method, args }: Call): Promise<unknown> {
  const methodsOf: Record<TableName, object> = operations
  const operation = (methodsOf[table] as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]
  if (operation === undefined) throw new Error(`cannot happen: no operation ${table}.${method}`)
  return operation(db, ...args)
}

function isFailedSync(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && failedSync.has(Number(error.errcode))
}

function failed({ id, table, method }: Call, error: unknown): Reply {
  return { id, failure: `${table}.${method}: ${error instanceof Error ? error.message : String(error)}` }
}
