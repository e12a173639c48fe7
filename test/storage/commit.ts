import t from 'tap'
import { CallClaims, createClaimMemory } from '../../src/storage/sqlite/claims.ts'
import { Committer } from '../../src/storage/sqlite/commit.ts'
import { connect } from '../../src/storage/sqlite/database.ts'
import type { StorageCall } from '../../src/storage/sqlite/protocol.ts'

const ping = (id: number): StorageCall => ({ id, table: 'probe', method: 'ping', args: [] })
const done = { value: undefined, changes: [] }

/** A committer over a connection on which `failing` fails once with `errcode`, and how often that was tried. */
function failingOnce(errcode: number, failing = 'commit') {
  const { connection, db } = connect(':memory:')
  connection.exec('create table probe (payload blob)')
  const exec = connection.exec.bind(connection)
  const tried = { times: 0 }
  connection.exec = statement => {
    if (statement === failing && tried.times++ === 0) throw Object.assign(new Error('disk I/O error'), { errcode })
    exec(statement)
  }
  const faults: string[] = []
  const place = { problem: undefined as string | undefined, committed: () => {} }
  const claims = new CallClaims(createClaimMemory())
  const committer = new Committer(
    { connection, db },
    {
      claims,
      files: { problem: () => place.problem, committed: () => place.committed() },
      onFault: fault => faults.push(fault),
    },
  )
  const commit = (calls: readonly StorageCall[]) => committer.commit(calls)
  return { connection, tried, faults, place, claims, commit }
}

t.test(
  'after a sync that failed nothing is written any more, because the next one would only seem to work',
  async t => {
    const { connection, commit, faults } = failingOnce(1034)
    t.match(await commit([ping(1)]), [{ failure: /disk I\/O error/ }])
    t.equal(connection.isTransaction, false)
    t.match(await commit([ping(2), ping(3)]), [
      { failure: /did not reach the disk/ },
      { failure: /did not reach the disk/ },
    ])
    t.equal(faults.length, 1)
  },
)

t.test('a commit holds when copying the log fails, but nothing is written after a sync that failed there', async t => {
  const { commit, faults, place } = failingOnce(0)
  await commit([ping(0)])
  let errcode = 13
  place.committed = () => {
    throw Object.assign(new Error('disk I/O error'), { errcode })
  }
  t.strictSame(await commit([ping(1)]), [done])
  t.equal(faults.length, 0)
  errcode = 1034
  t.strictSame(await commit([ping(2), ping(3)]), [done, done])
  t.equal(faults.length, 1)
  t.match(await commit([ping(4)]), [{ failure: /did not reach the disk/ }])
})

t.test('calls that shared a sync that failed all fail', async t => {
  const { commit } = failingOnce(1034)
  const replies = await commit([ping(1), ping(2)])
  t.ok(replies.every(reply => 'failure' in reply))
})

t.test('calls whose common commit failed for want of space are tried one by one', async t => {
  const { commit } = failingOnce(13)
  t.strictSame(await commit([ping(1), ping(2)]), [done, done])
})

t.test('calls that find the file locked fail together, after one wait', async t => {
  const { commit, tried } = failingOnce(5, 'begin immediate')
  t.match(await commit([ping(1), ping(2)]), [{ failure: /probe.ping/ }, { failure: /probe.ping/ }])
  t.equal(tried.times, 1)
  t.strictSame(await commit([ping(3)]), [done])
})

t.test('an unknown method fails alone', async t => {
  const { commit } = failingOnce(0)
  await commit([ping(0)])
  const replies = await commit([ping(1), { ...ping(2), method: 'pong' }, ping(3)])
  t.match(replies, [done, { failure: /no operation probe.pong/ }, done])
})

t.test('a call that fails leaves nothing behind, and those of its transaction hold', async t => {
  const { connection, commit } = failingOnce(0)
  await commit([ping(0)])
  let deletions = 0
  connection.function('fails', () => Number([2, 4].includes(++deletions)))
  connection.exec('create table deletions (at integer)')
  // Each call inserts and deletes. That of the second fails: run together with the others, and run apart from them.
  connection.exec(`create trigger each_call before delete on probe begin
    insert into deletions values (1);
    select raise(abort, 'no') where fails();
  end`)
  t.match(await commit([ping(1), ping(2), ping(3)]), [done, { failure: /probe.ping: no/ }, done])
  const count = (table: string) => connection.prepare(`select count(*) as rows from ${table}`).get()?.['rows']
  t.equal(count('probe'), 0, 'the insertion of the second is undone')
  t.equal(count('deletions'), 2, 'each call is counted once')
})

t.test('calls that all succeed share their transaction without a savepoint', async t => {
  const { connection, commit } = failingOnce(0)
  await commit([ping(0)])
  const begun: string[] = []
  const exec = connection.exec.bind(connection)
  connection.exec = statement => {
    begun.push(statement)
    exec(statement)
  }
  t.strictSame(await commit([ping(1), ping(2)]), [done, done])
  t.strictSame(begun, ['begin immediate', 'commit'])
})

t.test('a call that was given up is not begun, and one that was begun cannot be given up', async t => {
  const { claims, commit } = failingOnce(0)
  await commit([ping(0)])
  const [first = 0, second = 0] = [claims.open(), claims.open()]
  t.equal(claims.giveUp(first), true)
  t.match(await commit([ping(first), ping(second)]), [{ failure: /given up/ }, done])
  t.equal(claims.giveUp(second), false)
})

t.test(
  'what was written to a file that is no longer in its place is not acknowledged, and nothing is from then on',
  async t => {
    const { connection, place, faults, commit } = failingOnce(0)
    await commit([ping(0)])
    const exec = connection.exec.bind(connection)
    connection.exec = statement => {
      exec(statement)
      if (statement === 'commit') place.problem = 'gateway.db was moved'
    }
    t.match(await commit([ping(1), ping(2)]), [{ failure: /was moved/ }, { failure: /was moved/ }])
    place.problem = undefined
    t.match(await commit([ping(3)]), [{ failure: /was moved/ }])
    t.strictSame(faults, ['gateway.db was moved'])
  },
)
