/** Threat T45 of SECURITY.md: a store that does not answer is given up on, and what was given up is not done later. */
import { renameSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'

const onFiles = { Storage: { Provider: 'Sqlite' } }

for (const threads of [1, 2])
  t.test(`while another process has locked the database all is refused: ${threads} threads`, async t => {
    const Storage = { ...onFiles.Storage, Sqlite: { TimeoutSeconds: 2 } }
    const config = { Storage, System: { Server: { Threads: threads } } }
    const review = await startReview(t, { config })
    const { bot, manage, proxy, origin } = review
    const id = await review.hold('/held')
    const other = new DatabaseSync(`${review.directory}/data/gateway.db`)
    other.exec('begin immediate')
    const answers = await Promise.all([
      proxy(bot.token, `${origin.url}/more`, { method: 'POST' }),
      manage('POST', `/hitl/${id}/approve`),
      manage('POST', `/agents/${bot.id}/revoke`),
      manage('GET', '/health', undefined, null),
    ])
    for (const { status } of answers) t.equal(status, 503)
    t.match(JSON.parse(answers[3].text), { status: 'Unhealthy', parts: { storage: 'Unhealthy' } })
    other.exec('rollback')
    other.close()
    await eventually(
      () => manage('GET', '/health', undefined, null),
      ({ status }) => status === 200,
    )
    t.equal((await proxy(bot.token, `${origin.url}/read`)).status, 200, 'the revocation was not done')
    t.equal((await review.waiting(bot, 1)).length, 1, 'nor the suspension')
    t.equal(origin.seen.filter(({ method }) => method === 'POST').length, 0, 'nor the approval')
  })

t.test('a database that is moved away at run time is named, and no change is acknowledged', async t => {
  const { manage, agent, log, directory } = await startGateway(t, { config: onFiles })
  const { id } = await agent()
  renameSync(`${directory}/data/gateway.db`, `${directory}/data/moved.db`)
  t.match(await manage('POST', `/agents/${id}/revoke`), { status: 503 })
  t.match(await manage('GET', '/health'), { status: 503 })
  t.ok(
    await eventually(() => log.some(({ message }) => /writes no more: .*gateway\.db was moved/.test(message)), Boolean),
  )
})
