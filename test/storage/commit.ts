import t from 'tap'
import { createCommitter } from '../../src/storage/sqlite/commit.ts'
import { connect } from '../../src/storage/sqlite/database.ts'
import type { Call } from '../../src/storage/sqlite/protocol.ts'

const ping = (id: number): Call => ({ id, table: 'probe', method: 'ping', args: [] })

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
  return { connection, tried, commit: createCommitter({ connection, db }) }
}

t.test(
  'after a sync that failed nothing is written any more, because the next one would only seem to work',
  async t => {
    const { connection, commit } = failingOnce(1034)
    t.match(await commit([ping(1)]), [{ id: 1, failure: /disk I\/O error/ }])
    t.equal(connection.isTransaction, false)
    t.match(await commit([ping(2), ping(3)]), [
      { id: 2, failure: /did not reach the disk/ },
      { id: 3, failure: /did not reach the disk/ },
    ])
  },
)

t.test('calls that shared a sync that failed all fail', async t => {
  const { commit } = failingOnce(1034)
  const replies = await commit([ping(1), ping(2)])
  t.ok(replies.every(reply => 'failure' in reply))
})

t.test('calls whose common commit failed for want of space are tried one by one', async t => {
  const { commit } = failingOnce(13)
  t.same(await commit([ping(1), ping(2)]), [
    { id: 1, value: undefined },
    { id: 2, value: undefined },
  ])
})

t.test('calls that find the file locked fail together, after one wait', async t => {
  const { commit, tried } = failingOnce(5, 'begin immediate')
  t.match(await commit([ping(1), ping(2)]), [{ failure: /probe.ping/ }, { failure: /probe.ping/ }])
  t.equal(tried.times, 1)
  t.same(await commit([ping(3)]), [{ id: 3, value: undefined }])
})

t.test('an unknown method fails alone', async t => {
  const { commit } = failingOnce(0)
  await commit([ping(0)])
  const replies = await commit([ping(1), { ...ping(2), method: 'pong' }, ping(3)])
  t.match(replies, [{ id: 1, value: undefined }, { id: 2, failure: /no operation probe.pong/ }, { id: 3 }])
})
