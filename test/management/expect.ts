import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'

const gateway = await startGateway(t)
const body = JSON.stringify({ name: 'bot', ownerId: 'team', clientSecret: 'a-secret-of-the-tests' })
const head = (token: string) =>
  [
    'POST /agents HTTP/1.1',
    'Host: gateway',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Expect: 100-continue',
    '\r\n',
  ].join('\r\n')

t.test('a caller that waits is asked for the body once it is let in', async t => {
  const client = await openRaw(t, gateway.port)
  client.write(head(gateway.adminToken))
  await client.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/)
  client.write(body)
  t.match(await client.until(/\}$/), /HTTP\/1\.1 201 Created/)
})

t.test('a caller that is refused is never asked for the body', async t => {
  const client = await openRaw(t, gateway.port)
  client.write(head('wrong'))
  const text = await client.closed()
  t.match(text, /^HTTP\/1\.1 401 /)
  t.notMatch(text, /100 Continue/)
})
