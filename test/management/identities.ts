import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const { call, admin, person } = await startControl(t)
const at = (id: string) => `/agents/${id}/identities`
const account = (user: string) => ({ provider: 'slack', team: 'T0123ABCD', user })
const none = '00000000-0000-4000-8000-000000000000'

t.test('an admin sets the chat accounts of a person, and the trail has what changed', async t => {
  const { agent, token } = await person('reviewer')
  const identities = [account('U1AA'), account('U2AA')]
  const body = { identities: [...identities, account('U2AA')] }
  t.match(await call('PUT', at(agent.id), { token: admin.token, body }), { status: 200, text: '' })
  t.match(await call('GET', at(agent.id), { token: admin.token }), { status: 200, json: { identities } })
  const { json } = await call('GET', '/audit?action=agent.identities', { token: admin.token })
  t.match(json.items, [{ actor: admin.agent.id, subject: agent.id, details: { before: [], after: identities } }])
  for (const method of ['GET', 'PUT']) {
    const more = method === 'PUT' ? { body: { identities: [] } } : {}
    t.match(await call(method, at(agent.id), { token, ...more }), { status: 403 }, 'a reviewer cannot')
  }
})

t.test('T79 nobody gets the account of another', async t => {
  const [first, second] = [await person('reviewer'), await person('reviewer')]
  const set = (id: string, user: string) =>
    call('PUT', at(id), { token: admin.token, body: { identities: [account(user)] } })
  t.match(await set(first.agent.id, 'U3AA'), { status: 200 })
  t.match(await set(second.agent.id, 'U3AA'), { status: 409, json: { code: 'already_exists' } })
  t.match(await set(none, 'U4AA'), { status: 404 })
  t.match(await call('GET', at(none), { token: admin.token }), { status: 404 })
})

t.test('names, addresses, other services and too many accounts are refused', async t => {
  const { agent } = await person('reviewer')
  const wrong = [
    [{ ...account('U5AA'), provider: 'teams' }],
    [account('ada@example.com')],
    [account('ada')],
    [{ ...account('U5AA'), team: '' }],
    Array.from({ length: 6 }, (_, n) => account(`U6A${n}`)),
  ]
  for (const identities of wrong) {
    const answer = await call('PUT', at(agent.id), { token: admin.token, body: { identities } })
    t.match(answer, { status: 400, json: { code: 'invalid_body' } }, JSON.stringify(identities).slice(0, 80))
  }
})
