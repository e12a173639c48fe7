/**
 * Statements that are built once: putting a query together and turning it into SQL takes longer than running it.
 */
import type { Compilable, CompiledQuery, QueryResult } from 'kysely'
import type { Db } from './schema.ts'

/** Sends a statement at once: statements reach the engine in the order of the calls. */
export type SendStatement = <R>(sql: string, parameters: readonly unknown[]) => Promise<QueryResult<R>>

/** Of engines that need none of what Kysely does around a statement. */
const senders = new WeakMap<Db, SendStatement>()

/** From now on statements over `db` are sent by `send`. */
export function sendBy(db: Db, send: SendStatement): void {
  senders.set(db, send)
}

/** Stands for a value while the statement is built. */
class Placeholder {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

const placeholders = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) })

/**
 * A function that runs what `build` makes, with new values each time. `build` is called once for each engine; the
 * properties of its second argument stand for the values, and may be passed to Kysely but not looked at.
 */
export function statement<V extends object, R>(
  build: (db: Db, values: V) => Compilable<R>,
): (db: Db, values: V) => Promise<QueryResult<R>> {
  const built = new WeakMap<object, CompiledQuery<R>>()
  return (db, values) => {
    // A transaction is another Kysely, over the same adapter.
    const engine = db.getExecutor().adapter
    // The proxy has every property that is asked for.
    const query = built.get(engine) ?? build(db, placeholders as V).compile()
    built.set(engine, query)
    const parameters = query.parameters.map(parameter =>
      // Placeholders are made for the properties of the values alone.
      parameter instanceof Placeholder ? values[parameter.name as keyof V] : parameter,
    )
    const send = senders.get(db)
    return send === undefined ? db.executeQuery({ ...query, parameters }) : send<R>(query.sql, parameters)
  }
}

/** The placeholders of a whole row, for an insert. */
export function columns<R extends object, K extends keyof R>(values: R, names: readonly K[]): Pick<R, K> {
  // The names are those of K.
  return Object.fromEntries(names.map(name => [name, values[name]])) as Pick<R, K>
}

/** How many rows a statement wrote or removed. */
export function changed(result: QueryResult<unknown>): number {
  return Number(result.numAffectedRows ?? 0)
}

/**
 * Locks the rows that a query reads until the transaction ends, on engines where others write at the same time. Rows that
 * another one has locked are waited for, or left out with `skip`.
 */
export function locked<Q extends { forUpdate(): Q; skipLocked(): Q }>(db: Db, query: Q, skip = false): Q {
  if (!db.getExecutor().adapter.supportsMultipleConnections) return query
  return skip ? query.forUpdate().skipLocked() : query.forUpdate()
}
