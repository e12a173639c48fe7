/** What is found in held bodies, on the road of a request. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { startReview } from '../fixtures/review.ts'

t.test('reviewers see what a held body has, and where', async t => {
  const { hold, call } = await startReview(t)
  const id = await hold('/held', { body: `{"note":"AKIAQWERTYUIOPASDFGH","password":"hunter2"}` })
  t.match(await (await call('GET', `/hitl/${id}`)).json(), {
    pending: {
      findings: { 'aws-access-key': 1, 'secret-name': 1 },
      findingPlaces: [
        { detector: 'aws-access-key', from: 9, to: 29 },
        { detector: 'secret-name', from: 43, to: 50 },
      ],
    },
  })
})

t.test('nothing is held for an agent that was revoked while its body was searched', async t => {
  const { newBot, origin, proxy, manage, hold, call, adminToken } = await startReview(t)
  // Its search takes half a second.
  const body = 'form-data; name="a"\r\n'.repeat(390_000)
  const revoked: string[] = []
  // A machine that is busy gets more attempts.
  for (let turn = 0; turn < 3 || revoked.length === 0; turn++) {
    const { id, token } = await newBot()
    const answering = proxy(token, `${origin.url}/held`, { method: 'POST', body })
    await setTimeout(150 + ((turn * 100) % 1_000))
    t.equal((await manage('POST', `/agents/${id}/revoke`)).status, 200)
    if ((await answering).status === 403) revoked.push(id)
  }
  t.ok(revoked.length > 0)
  // The searches that were begun have ended when this one has.
  await hold('/held', { bot: await newBot(), body })
  const answer = await call('GET', '/audit?action=hitl.suspend', { token: adminToken })
  const { items } = (await answer.json()) as { readonly items: readonly { readonly actor: string }[] }
  t.equal(items.length > 0 && items.some(({ actor }) => revoked.includes(actor)), false)
})
