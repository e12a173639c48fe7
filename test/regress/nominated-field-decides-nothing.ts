/** A field that `Connection` names is not sent on. Rules read it all the same, and allowed what the upstream never got. */

import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const sandboxed = {
  name: 'sandboxed',
  default: 'Deny',
  rules: [
    {
      name: 'dry-run',
      effect: 'Allow',
      conditions: [{ field: 'input.headers.x-dry-run', operator: 'eq', value: 'yes' }],
    },
  ],
}

t.test('T05 T22 a field that is for the connection alone is not there for a rule', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t, { config: { Policies: [sandboxed] } })
  const { token } = await gateway.agent({ policyName: 'sandboxed' })
  const send = async (connection: string) => {
    const client = await openRaw(t, gateway.port)
    const fields = `Host: g\r\nGateway-Authorization: Bearer ${token}\r\nX-Dry-Run: yes\r\nConnection: ${connection}\r\n`
    client.write(`GET /proxy/${origin.url}/ HTTP/1.1\r\n${fields}\r\n`)
    return (await client.closed()).slice(9, 12)
  }
  t.equal(await send('close'), '200')
  t.equal(origin.seen.length, 1)
  t.equal(await send('close, X-Dry-Run'), '403')
  t.equal(await send('x-other, x-dry-run, close'), '403')
  t.equal(origin.seen.length, 1)
})
