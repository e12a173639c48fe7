/** Threat T01 of SECURITY.md. */

import t from 'tap'
import { openApi, readOperations } from '../../src/api/openapi.ts'
import { startControl } from '../fixtures/control.ts'
import { openRaw } from '../fixtures/raw.ts'

const control = await startControl(t)
const { call, person, store } = control
const everyone = await Promise.all((['agent', 'reviewer', 'auditor', 'admin'] as const).map(role => person(role)))
const guarded = readOperations(openApi).filter(({ access }) => access.length > 0)

/** A path of the operation that leads to nothing. */
const emptyPath = (path: string) => path.replaceAll(/\{\w+\}/g, 'nobody')

for (const { id, method, path, access } of guarded) {
  t.test(`${id} lets in ${access.join(', ')} and refuses the rest`, async t => {
    for (const { agent, token } of everyone) {
      const role = agent.roles[0]!
      const { status, json } = await call(method, emptyPath(path), { token })
      if (access.includes('own') || access.includes(role)) t.not(status, 403, role)
      else t.match({ status, json }, { status: 403, json: { code: 'forbidden' } }, role)
    }
  })

  t.test(`${id} is 401 without a token of the gateway in Authorization`, async t => {
    const token = everyone[3]!.token
    const attempts: Record<string, string>[] = [
      {},
      { 'gateway-authorization': `Bearer ${token}` },
      { authorization: token },
      { authorization: `Basic ${token}` },
      { authorization: 'Bearer ' },
      { authorization: `Bearer ${token.slice(0, -2)}AA` },
      { authorization: `Bearer ${token} ${token}` },
    ]
    for (const headers of attempts) {
      const { status, text, headers: answered } = await call(method, emptyPath(path), { headers })
      t.strictSame({ status, text }, { status: 401, text: 'Missing or invalid authentication' })
      t.match(answered.get('www-authenticate'), /^Bearer error/)
    }
  })
}

t.test('Authorization twice with two values is 401, whichever of them is right', async t => {
  const [, , , admin] = everyone
  const lines = [`Authorization: Bearer ${admin!.token}`, 'Authorization: Bearer other']
  for (const fields of [lines, lines.toReversed()]) {
    const client = await openRaw(t, Number(new URL(control.url).port))
    client.write(`GET /agents HTTP/1.1\r\nHost: x\r\n${fields.join('\r\n')}\r\n\r\n`)
    t.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 401 /)
  }
})

t.test('a missing role is on record', async t => {
  const { agent, token } = await person('agent')
  await call('DELETE', '/agents/nobody', { token })
  const { items } = await store.audit.list({ page: 1, pageSize: 1 })
  t.match(items, [{ actor: agent.id, action: 'management.refused', subject: 'deleteAgent', requestId: /^request-/ }])
})
