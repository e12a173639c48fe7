import t from 'tap'
import { startControl } from '../fixtures/control.ts'

t.test('policies of every source are listed by name, in pages', async t => {
  const { call, admin, book, loadFile } = await startControl(t)
  const rules = [{ name: 'r', effect: 'Allow', conditions: [] }]
  await book.create({ name: 'b', description: 'second', owner: 'sec', rules }, { actor: 'x', requestId: null })
  await loadFile('a')
  const { status, json } = await call('GET', '/policies', { token: admin.token })
  t.equal(status, 200)
  t.match(json, { page: 1, pageSize: 25, totalCount: 2, items: [{ name: 'a', source: 'file' }, {}] })
  t.strictSame(json.items[1], {
    name: 'b',
    policyName: 'b',
    description: 'second',
    owner: 'sec',
    default: 'Deny',
    ruleCount: 1,
    source: 'api',
  })
  const second = await call('GET', '/policies?page=2&pageSize=1', { token: admin.token })
  t.match(second.json, { page: 2, pageSize: 1, totalCount: 2, items: [{ name: 'b' }] })
  t.match(await call('GET', '/policies?page=0', { token: admin.token }), { status: 400 })
})
