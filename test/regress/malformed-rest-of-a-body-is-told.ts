/** A body in chunks that turned out malformed: the agent got 400 or nothing at all, and the log said 200 or `aborted`. */
import type { Socket } from 'node:net'
import t from 'tap'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { openRaw, startRawServer } from '../fixtures/raw.ts'

const careful = {
  name: 'careful',
  default: 'Allow',
  rules: [{ name: 'r', effect: 'Deny', conditions: [{ field: 'input.bodyText', operator: 'contains', value: 'x' }] }],
}
const malformed = ['zz\r\nhello\r\n', '5\r\nhello\r\nzz\r\n', '5\r\nhelloXX0\r\n\r\n']

for (const policyName of ['allow-all', 'careful']) {
  t.test(`a malformed body is 400, and the log says so, under ${policyName}`, async t => {
    const server = await startRawServer(t, () => {})
    const gateway = await startGateway(t, { config: { Policies: [careful] } })
    const allowed = await gateway.policy({ name: 'all', default: 'Allow' })
    const { token } = await gateway.agent({ policyName: policyName === 'careful' ? 'careful' : allowed })
    let count = 0
    for (const body of malformed) {
      for (const apart of [false, true]) {
        const head = `POST /proxy/${server.url}/ HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n`
        const client = await openRaw(t, gateway.port)
        client.write(`${head}Transfer-Encoding: chunked\r\n\r\n${apart ? '' : body}`)
        if (apart) setTimeout(() => client.write(body), 30)
        t.match(await client.closed(), /^HTTP\/1\.1 400 [\s\S]*Gateway-Error: invalid_request/)
        count += 1
        const line = (await gateway.exchanges(count)).at(-1)
        t.match(line, { status: 400, refusal: 'invalid_request', ending: 'refused' }, JSON.stringify(body))
      }
    }
  })
}

t.test(
  'while the head of a short answer waits for its body, a malformed rest of the request is still told',
  async t => {
    let upstream: Socket | undefined
    const server = await startRawServer(t, socket => {
      upstream = socket
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'))
    })
    const gateway = await startGateway(t)
    const { token } = await gateway.agent()
    const client = await openRaw(t, gateway.port)
    const head = `POST /proxy/${server.url}/ HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${token}\r\n`
    client.write(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`)
    await eventually(
      () => upstream?.bytesWritten,
      written => (written ?? 0) > 0,
    )
    client.write('zz\r\n')
    const text = await client.closed()
    const [line] = await gateway.exchanges(1)
    t.match(text, new RegExp(`^HTTP/1\\.1 ${line?.['status']} `))
    t.match(line, { status: 400, ending: 'refused' })
  },
)
