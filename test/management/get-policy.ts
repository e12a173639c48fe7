import t from 'tap'
import { startControl } from '../fixtures/control.ts'

const control = await startControl(t)

t.test('a policy is read with its rules, its time and its version', async t => {
  const { call, admin, book } = control
  const rules = [{ name: 'r', effect: 'Allow', conditions: [] }]
  await book.create({ name: 'p', description: 'd', owner: 'o', rules }, { actor: 'x', requestId: null })
  const { status, json } = await call('GET', '/policies/p', { token: admin.token })
  t.equal(status, 200)
  t.match(json, {
    name: 'p',
    description: 'd',
    owner: 'o',
    default: 'Deny',
    rules,
    CreatedOn: '2026-01-05T10:00:00.000Z',
    version: /^sha256:[0-9a-f]{64}$/,
    source: 'api',
  })
  t.equal((await call('PUT', '/policies/p', { token: admin.token, body: json })).status, 200, 'it can be sent back')
})

t.test('a policy that is not there is 404, whatever its name tries', async t => {
  const { call, admin } = control
  const names = [
    'does-not-exist',
    '..%2f..%2fetc%2fpasswd',
    '__proto__',
    'constructor',
    'toString',
    'x'.repeat(10_240),
    "'%20OR%201=1--",
    '%F0%9F%98%80',
    '.',
  ]
  for (const name of names)
    t.match((await call('GET', `/policies/${name}`, { token: admin.token })).status, 404, name.slice(0, 40))
})

t.test('a name that is no text is 400', async t => {
  const { call, admin } = control
  for (const name of ['%00', 'a%00b', '%0d%0a', '%zz', '%', '%ff'])
    t.match(await call('GET', `/policies/${name}`, { token: admin.token }), {
      status: 400,
      json: { code: 'invalid_parameter' },
    })
})
