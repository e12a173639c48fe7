/** The client of gRPC through the forward proxy, which it takes from the environment: HTTP/2 in a tunnel. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  status as statuses,
} from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { authorityOf, startForwardReview } from '../fixtures/forward.ts'
import { http2Setup } from '../fixtures/forward-http2.ts'
import { certFile, keyFile } from '../fixtures/origin-http2.ts'

const plain = { serialize: (text: string) => Buffer.from(text), deserialize: (bytes: Buffer) => String(bytes) }
const method = (path: string, requestStream: boolean, responseStream: boolean) => ({
  ...{ path, requestStream, responseStream },
  ...{ requestSerialize: plain.serialize, requestDeserialize: plain.deserialize },
  ...{ responseSerialize: plain.serialize, responseDeserialize: plain.deserialize },
})
const service = {
  greet: method('/test.Words/Greet', false, false),
  held: method('/test.Words/Held', false, false),
  denied: method('/test.Words/Denied', false, false),
  count: method('/test.Words/Count', false, true),
  echo: method('/test.Words/Echo', true, true),
} satisfies ServiceDefinition

type Done = (error: object | null, text?: string) => void

function greet({ request }: { readonly request: string }, done: Done): void {
  if (request === 'nobody') done({ code: statuses.NOT_FOUND, details: 'there is nobody' })
  else done(null, `hello ${request}`)
}

/** A server at idp.test. */
async function startServer(t: Test): Promise<string> {
  const server = new Server()
  server.addService(service, {
    greet,
    held: greet,
    denied: (_call: unknown, done: (error: null, text: string) => void) => done(null, 'never'),
    count(call: { write(text: string): void; end(): void }) {
      for (const word of ['one', 'two', 'three']) call.write(word)
      call.end()
    },
    echo(call: NodeJS.ReadWriteStream) {
      call.on('data', (word: string) => call.write(word.toUpperCase())).on('end', () => call.end())
    },
  })
  const pair = { cert_chain: readFileSync(certFile), private_key: readFileSync(keyFile) }
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createSsl(null, [pair]))
  t.teardown(() => server.forceShutdown())
  return `idp.test:${port}`
}

const to = await startServer(t)
const gateway = await startForwardReview(t, http2Setup())
await gateway.policy({
  name: 'words',
  default: 'Allow',
  rules: [
    {
      name: 'denied',
      effect: 'Deny',
      conditions: [{ field: 'input.path', operator: 'eq', value: service.denied.path }],
    },
    {
      name: 'held',
      effect: 'Hitl',
      conditions: [{ field: 'input.path', operator: 'eq', value: service.held.path }],
    },
  ],
})
const bot = await gateway.agent({ policyName: 'words' })
process.env['https_proxy'] = `http://agent:${bot.token}@127.0.0.1:${gateway.forwardPort}`
const client = new Client(to, credentials.createSsl(Buffer.from(authorityOf(gateway))))
t.teardown(() => client.close())

const unary = (path: string, text: string) =>
  new Promise<string | ServiceError>(resolve => {
    client.makeUnaryRequest(path, plain.serialize, plain.deserialize, text, (error, answer) =>
      resolve(error ?? answer ?? ''),
    )
  })

t.test('a call has its answer, and an error its status and text', async t => {
  t.equal(await unary(service.greet.path, 'world'), 'hello world')
  t.match(await unary(service.greet.path, 'nobody'), { code: statuses.NOT_FOUND, details: 'there is nobody' })
  const lines = await gateway.exchanges(2)
  t.match(lines[0], { road: 'intercepted', method: 'POST', path: service.greet.path, agentId: bot.id, status: 200 })
})

t.test('what the policy denies is PERMISSION_DENIED', async t => {
  t.match(await unary(service.denied.path, ''), { code: statuses.PERMISSION_DENIED })
})

t.test('a call that is held gets the answer of its approval, or its error', async t => {
  for (const [text, answer] of [
    ['world', 'hello world'],
    ['nobody', { code: statuses.NOT_FOUND, details: 'there is nobody' }],
  ] as const) {
    const answered = unary(service.held.path, text)
    const [held] = await gateway.waiting(bot, 1)
    await gateway.approve(held!.id)
    t.match(await answered, answer)
  }
})

t.test('a stream of the server comes whole', async t => {
  const words: string[] = []
  const { count } = service
  const call = client.makeServerStreamRequest(count.path, plain.serialize, plain.deserialize, 'all')
  for await (const word of call) words.push(word)
  t.strictSame(words, ['one', 'two', 'three'])
})

t.test('a stream in both directions is answered word by word, and ends when the agent is revoked', async t => {
  const call = client.makeBidiStreamRequest(service.echo.path, plain.serialize, plain.deserialize)
  for (const word of ['one', 'two']) {
    call.write(word)
    t.strictSame(await once(call, 'data'), [word.toUpperCase()])
  }
  const failed = once(call, 'error')
  await gateway.manage('POST', `/agents/${bot.id}/revoke`)
  await failed
  t.match(await unary(service.greet.path, 'world'), { code: statuses.UNAVAILABLE })
})
