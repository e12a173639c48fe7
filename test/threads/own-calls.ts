import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { openKept } from '../fixtures/kept.ts'
import { openRaw } from '../fixtures/raw.ts'

const gateway = await startGateway(t, { config: { System: { Server: { Threads: 2 } } } })
const clients = openKept(t, gateway.port)
const admin = { Authorization: `Bearer ${gateway.adminToken}` }

/** What every connection is answered; one text for each kind of answer. */
async function kinds(path: string, call = {}): Promise<readonly string[]> {
  const answers = await Promise.all(clients.map(client => client.call(path, call)))
  return [...new Set(answers.map(({ status, headers, text }) => `${status} ${headers['content-type']} ${text.length}`))]
}

t.test('calls of the gateway itself are answered alike, whichever thread took them', async t => {
  for (const [path, call, status] of [
    ['/agents?pageSize=1', { headers: admin }, 200],
    ['/agents', {}, 401],
    ['/nowhere', { headers: admin }, 404],
    ['/health', { method: 'PUT' }, 405],
    ['/open-api', { method: 'HEAD' }, 200],
    ['/open-api/gateway/specifications.json', {}, 200],
    ['/tokens', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{' }, 400],
    ['/tokens', { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'x' }, 415],
    ['/agents', { method: 'POST', headers: admin }, 400],
  ] as const) {
    const found = await kinds(path, call)
    t.equal(found.length, 1, `${path}: ${found}`)
    t.match(found[0], new RegExp(`^${status} `))
  }
})

t.test('a health check in HTTP/1.0 without a Host is answered in every thread', async t => {
  const answers = clients.map(async () => {
    const client = await openRaw(t, gateway.port)
    client.write('GET /health HTTP/1.0\r\n\r\n')
    return (await client.closed()).slice(0, 15)
  })
  t.strictSame([...new Set(await Promise.all(answers))], ['HTTP/1.1 200 OK'])
})

t.test('a connection counts once, also while a call that came on it is passed on', async t => {
  const count = async () => {
    const counts = new Set<string | undefined>()
    for (const client of clients) {
      const { text } = await client.call('/metrics', { headers: admin })
      counts.add(/^agent_gateway_client_connections (\d+)$/m.exec(text)?.[1])
    }
    return [...counts]
  }
  // A connection from before may close in between.
  const counts = await eventually(count, ({ length }) => length === 1)
  t.equal(counts.length, 1, `${counts}`)
})

t.test('a body of a megabyte arrives whole, and one that is too large is 413', async t => {
  const document = { name: 'large', default: 'Deny', description: 'x'.repeat(900_000) }
  const headers = { ...admin, 'Content-Type': 'application/json' }
  for (const [index, client] of clients.entries()) {
    const body = JSON.stringify({ ...document, name: `large-${index}`, description: 'x'.repeat(1_000) })
    t.equal((await client.call('/policies', { method: 'POST', headers, body })).status, 201)
  }
  const body = JSON.stringify({ ...document, description: 'x'.repeat(1_100_000) })
  const answers = await Promise.all(
    clients.map(client => client.call('/policies', { method: 'POST', headers, body }).catch(() => ({ status: 413 }))),
  )
  t.strictSame([...new Set(answers.map(({ status }) => status))], [413])
})

t.test('a body that comes in pieces without a length arrives whole', async t => {
  const { id } = await gateway.agent()
  for (let i = 0; i < 12; i++) {
    const answer = await fetchDocumented(`${gateway.url}/agents/${id}/roles`, {
      method: 'PUT',
      headers: { ...admin, 'Content-Type': 'application/json', Connection: 'close' },
      body: new ReadableStream({
        async start(controller) {
          for (const piece of ['{"roles"', ':["agent"', ',"auditor"]}']) {
            controller.enqueue(Buffer.from(piece))
            await new Promise(setImmediate)
          }
          controller.close()
        },
      }),
      duplex: 'half',
    } as RequestInit)
    t.equal(answer.status, 200)
    await answer.body?.cancel()
    t.match(JSON.parse((await gateway.manage('GET', `/agents/${id}`)).text), { roles: ['agent', 'auditor'] })
  }
})

t.test('the address of the client goes with the call: guesses are counted by it, in all threads together', async t => {
  const strict = await startGateway(t, {
    // None is let pass again for its time.
    clock: createClock(),
    config: {
      System: { Server: { Threads: 2 } },
      Security: { AgentAuth: { TokenRequests: { PerAddressPerMinute: 10, PerAgentPerMinute: 1_000 } } },
    },
  })
  const { id } = await strict.agent()
  const body = JSON.stringify({ agentId: id, clientSecret: 'wrong' })
  const headers = { 'Content-Type': 'application/json' }
  const statuses: number[] = []
  for (const client of openKept(t, strict.port)) {
    statuses.push((await client.call('/tokens', { method: 'POST', headers, body })).status)
  }
  t.strictSame(statuses, [...Array(10).fill(401), ...Array(14).fill(429)])
})

t.test('review events reach whoever listens, through any thread, as they happen', async t => {
  const name = await gateway.policy({ name: 'hold', default: 'Hitl' })
  const bot = await gateway.agent({ policyName: name })
  const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })
  const leave = new AbortController()
  const streams = await Promise.all(
    Array.from({ length: 12 }, () =>
      fetchDocumented(`${gateway.url}/hitl/events`, {
        headers: { Authorization: `Bearer ${reviewer.token}`, Connection: 'close' },
        signal: leave.signal,
      }),
    ),
  )
  const readers = streams.map(({ body }) => body!.pipeThrough(new TextDecoderStream()).getReader())
  const heard = readers.map(async reader => {
    let text = ''
    while (!text.includes('event: pending')) text += (await reader.read()).value
    return true
  })
  t.equal((await gateway.proxy(bot.token, 'http://127.0.0.1:9/', { method: 'POST' })).status, 202)
  t.ok((await Promise.all(heard)).every(Boolean))
  leave.abort()
})

/** What connections of several threads are answered that all send this and no more; one text for each kind. */
async function stalled(t: Test, port: number, text: string): Promise<readonly string[]> {
  const answers = clients.map(async () => {
    const client = await openRaw(t, port)
    client.write(text)
    return (await client.closed()).slice(0, 'HTTP/1.1 200'.length)
  })
  return [...new Set(await Promise.all(answers))]
}

t.test('a call whose body does not come is answered in every thread, and harms none', async t => {
  const config = { System: { Server: { Threads: 2, IdleTimeoutSeconds: 1, KeepAliveSeconds: 1 } } }
  const hasty = await startGateway(t, { config })
  const head = 'HTTP/1.1\r\nHost: g\r\nContent-Length: 10\r\n'
  const [late, needless, refused] = await Promise.all([
    stalled(t, hasty.port, `POST /tokens ${head}\r\n{`),
    stalled(t, hasty.port, `GET /health ${head}\r\n`),
    stalled(t, hasty.port, `POST /agents ${head}Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n`),
  ])
  t.strictSame(late, ['HTTP/1.1 408'])
  t.strictSame(needless, ['HTTP/1.1 200'], 'an answer that needs no body does not wait for it')
  t.strictSame(refused, ['HTTP/1.1 401'], 'nobody is asked for a body that will not be read')
  t.strictSame(
    hasty.log.filter(({ message }) => message.startsWith('thread')),
    [],
  )
})
