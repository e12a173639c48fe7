import t from 'tap'
import { startControl } from '../fixtures/control.ts'

t.test('auditors read how far the trail was verified', async t => {
  const { call, person, store, verification, clock } = await startControl(t, {}, { alone: 'each gateway verifies' })
  const { token } = await person('auditor')
  const read = () => call('GET', '/audit/verification', { token })
  t.match(await read(), { status: 200, json: { status: 'running', verifiedTo: 0, verifiedAt: null } })
  await verification.step()
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(await read(), {
    status: 200,
    json: {
      ...{ status: 'intact', verifiedTo: items[0]!.seq, lastHash: items[0]!.hash },
      ...{ verifiedAt: new Date(clock.now()).toISOString(), firstBroken: null, why: null },
    },
  })
  const reviewer = await person('reviewer')
  t.equal((await call('GET', '/audit/verification', { token: reviewer.token })).status, 403)
})
