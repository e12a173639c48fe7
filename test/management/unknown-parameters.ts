/** A query parameter that an operation does not declare is refused, as an unknown member of a body is. */
import t from 'tap'
import { openApi, readOperations } from '../../src/api/openapi.ts'
import { startControl } from '../fixtures/control.ts'

const { call, admin } = await startControl(t)
const { token } = admin
const errorsOf = async (target: string) => (await call('GET', target, { token })).json.errors

t.test('every operation refuses one before it does anything, but those that say otherwise', async t => {
  const tolerant: string[] = []
  for (const { id, method, path } of readOperations(openApi)) {
    const at = path.replaceAll(/\{(\w+)\}/g, 'x')
    const { status, json } = await call(method, `${at}?no-such-parameter=1`, { token })
    if (json?.code !== 'invalid_parameter') tolerant.push(id)
    else {
      const errors = [{ field: 'no-such-parameter', message: 'must not be given: unknown parameter' }]
      t.match({ status, json }, { status: 400, json: { errors } }, id)
    }
  }
  t.strictSame(tolerant, ['getConsole', 'returnFromConsent', 'getHealth', 'getLiveness', 'getProxyHealth'])
})

t.test('a caller without a token learns nothing about parameters', async t => {
  t.match(await call('GET', '/agents?nope=1'), { status: 401 })
})

t.test('a name like that of a parameter is suggested', async t => {
  t.strictSame(await errorsOf('/agents?pagesize=5'), [
    { field: 'pagesize', message: 'must not be given: unknown parameter, did you mean pageSize?' },
  ])
  t.match(await errorsOf('/hitl?AgentId=x&rules=y'), [
    { message: /did you mean agentId\?$/ },
    { message: /did you mean rule\?$/ },
  ])
})

t.test('declared parameters with mistakes are named beside unknown ones', async t => {
  t.match(await errorsOf('/agents?nope=1&page=0'), [{ field: 'nope' }, { field: 'page' }])
})

t.test('many or long names make a short answer', async t => {
  const many = await errorsOf(`/agents?${Array.from({ length: 1_000 }, (_, index) => `a${index}`).join('&')}`)
  t.equal(many.length, 10)
  t.match(await errorsOf(`/agents?${'x'.repeat(4_000)}`), [{ field: /^x{100}$/ }])
})
