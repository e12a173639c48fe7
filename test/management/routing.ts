/** Threat T39 of SECURITY.md. */

import t from 'tap'
import { openApi } from '../../src/api/openapi.ts'
import { startControl } from '../fixtures/control.ts'

const { call, admin } = await startControl(t)
const token = admin.token

t.test('a path that is none is 404, however it is spelled', async t => {
  const paths = ['/', '/nope', '/agents/', '/agents/a/b/c', '//agents', '/Agents', '/hitl/', '/open-api/', '/%2f']
  for (const path of paths)
    t.match(await call('GET', path, { token }), { status: 404, json: { code: 'not_found' } }, path)
})

t.test('a path that is no text is 400', async t => {
  for (const path of ['/%00', '/agents/%', '/%zz', '/agents/%c3%28', '/hitl/%0a'])
    t.match(await call('GET', path, { token }), { status: 400, json: { code: 'invalid_parameter' } }, path)
})

t.test('a method that is not offered is 405, and Allow names those that are', async t => {
  for (const [path, operations] of Object.entries(openApi.paths)) {
    if (path.startsWith('/proxy')) continue
    const at = path.replaceAll(/\{\w+\}/g, 'x')
    const offered = Object.keys(operations).map(method => method.toUpperCase())
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'QUERY']) {
      if (offered.includes(method)) continue
      const { status, headers, json } = await call(method, at, { token })
      t.match({ status, json }, { status: 405, json: { code: 'method_not_allowed' } }, `${method} ${at}`)
      const allowed = offered.includes('GET') ? [...offered, 'HEAD'] : offered
      t.strictSame(headers.get('allow')?.split(', ').sort(), allowed.sort(), `${method} ${at}`)
    }
  }
})

t.test('HEAD is answered like GET, without a body', async t => {
  for (const path of ['/health', '/open-api', '/agents', '/hitl']) {
    const get = await call('GET', path, { token })
    const head = await call('HEAD', path, { token })
    t.equal(head.status, 200)
    t.equal(head.text, '')
    if (path !== '/health') t.equal(head.headers.get('content-length'), get.headers.get('content-length'), path)
  }
})

t.test('a method override is not understood', async t => {
  const headers = { 'x-http-method-override': 'DELETE' }
  t.match(await call('GET', `/agents/${admin.agent.id}`, { token, headers }), { status: 200 })
})
