import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)
const { call, person, suspend, store, upstream } = control
const bot = await person('agent')
const { token } = await person('reviewer')

/** A held request, and the entity tag that a reviewer got with it. */
async function seen(): Promise<{ id: string; tag: string }> {
  const id = await suspend(bot.agent)
  const { headers, json } = await call('GET', `/hitl/${id}`, { token })
  const tag = headers.get('etag')!
  t.equal(tag, `"${json.pending.digest}"`)
  return { id, tag }
}

t.beforeEach(() => {
  upstream.sent.length = 0
})

for (const what of ['approve', 'deny']) {
  const decide = (id: string, tag: string) =>
    call('POST', `/hitl/${id}/${what}`, { token, headers: { 'If-Match': tag } })

  t.test(`${what} is 412 when If-Match names another request than this one`, async t => {
    const { id, tag } = await seen()
    const other = `"${'0'.repeat(64)}"`
    for (const wrong of [other, `W/${tag}`, tag.slice(1, -1), '""', `${other}, ${other}`]) {
      t.match(await decide(id, wrong), { status: 412, json: { code: 'not_as_seen' } }, wrong)
    }
    t.match(await store.hitl.brief(id, control.clock.now()), { status: 'Pending', approvedBy: [] })
    t.equal(upstream.sent.length, 0)
  })

  t.test(`${what} is done when If-Match names the request, or anything`, async t => {
    for (const right of [(tag: string) => tag, (tag: string) => `"other", ${tag}`, () => '*']) {
      const { id, tag } = await seen()
      t.equal((await decide(id, right(tag))).status, 200)
    }
  })
}
