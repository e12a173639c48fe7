/**
 * Threat T21 of SECURITY.md, through a gateway: whatever an upstream does, nothing of one agent reaches another that uses
 * the same upstream, and may use the same client connection. test/upstream/properties-two-agents.ts has the same for the
 * connections alone, turn by turn.
 */
import { Agent, request } from 'node:http'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { Peer, type Script, steps, World } from '../fixtures/odd-upstream.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { runs } from '../fixtures/runs.ts'

interface Asked {
  readonly agent: 'A' | 'B'
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly authenticates: boolean
  /** Over the connection that both agents use, as behind a front proxy; else over one of its own. */
  readonly shared: boolean
  /** The next request does not wait for the answer. */
  readonly together: boolean
}

/** Runs scripts against one gateway. */
async function start(t: Test, threads: number) {
  const world = new World()
  let underWay = 0
  world.isIdle = () => underWay === 0
  const upstream = await startRawServer(t, socket => {
    const peer = new Peer(world, {
      write: bytes => void (socket.destroyed || socket.write(bytes, 'latin1')),
      reset: () => void socket.resetAndDestroy(),
      end: () => void socket.end(),
    })
    socket.setNoDelay(true).on('data', chunk => peer.take(chunk.toString('latin1')))
  })
  const gateway = await startGateway(t, {
    config: {
      System: {
        Server: { Threads: threads },
        RateLimit: { RequestsPerMinute: 10_000_000, Burst: 10_000_000 },
        CircuitBreaker: { Failures: 10_000 },
      },
      Proxy: { MaxConnectionsPerOrigin: 4 * threads },
    },
  })
  const tokens = { A: (await gateway.agent()).token, B: (await gateway.agent()).token }
  const newAgent = () => new Agent({ keepAlive: true, maxSockets: 1 })
  const clients = { A: newAgent(), B: newAgent(), shared: newAgent() }
  t.teardown(() => {
    for (const client of Object.values(clients)) client.destroy()
  })
  /** Lets the upstream say what is due in each turn of the event loop, until all is said and answered. */
  const pump = async (): Promise<void> => {
    while (underWay > 0 || world.later.length > 0) {
      world.deliver()
      await new Promise(setImmediate)
    }
  }

  /** Everything that the client gets: status, fields and body, or as much as comes. */
  const ask = ({ agent, method, authenticates, shared }: Asked): Promise<string> =>
    new Promise(resolve => {
      let got = ''
      const over = (): void => resolve(got)
      const req = request({
        port: gateway.port,
        path: `/proxy/${upstream.url}/${agent}`,
        method,
        agent: shared ? clients.shared : clients[agent],
        headers: {
          'Gateway-Authorization': `Bearer ${tokens[agent]}`,
          'X-Agent': `of-${agent}`,
          Cookie: `session=of-${agent}`,
          ...(authenticates ? { Authorization: `Negotiate of-${agent}` } : {}),
          ...(method === 'POST' ? { 'Content-Length': '10' } : {}),
        },
      })
      req.on('information', ({ rawHeaders }) => {
        got += rawHeaders.join(' ')
      })
      req.on('response', res => {
        got += `${res.statusCode} ${res.rawHeaders.join(' ')} `
        res.setEncoding('latin1')
        res.on('data', text => {
          got += text
        })
        res.on('close', over)
      })
      req.on('error', over).on('close', over)
      if (method === 'POST') req.write(`of-${agent} `)
      setImmediate(() => req.end(method === 'POST' ? `of-${agent} ` : undefined))
    })

  return async (asked: readonly Asked[], script: readonly Script[]): Promise<void> => {
    world.script = [...script]
    const answers: Promise<unknown>[] = []
    for (const one of asked) {
      underWay += 1
      const answer = ask(one).then(got => {
        underWay -= 1
        const other = one.agent === 'A' ? 'B' : 'A'
        if (got.includes(`of-${other}`)) world.leaks.push(`${one.agent} got what is for ${other}: ${got}`)
        if (got.includes(`rights of ${other}`)) world.leaks.push(`${one.agent} has the rights of ${other}: ${got}`)
      })
      answers.push(answer)
      if (!one.together) await Promise.all([answer, pump()])
    }
    await Promise.all([...answers, pump()])
    const [leak] = world.leaks.splice(0)
    if (leak !== undefined) throw new Error(leak)
  }
}

const asked: fc.Arbitrary<Asked> = fc.record({
  agent: fc.constantFrom('A' as const, 'B' as const),
  method: fc.constantFrom('GET' as const, 'GET' as const, 'HEAD' as const, 'POST' as const),
  authenticates: fc.integer({ min: 0, max: 7 }).map(n => n === 0),
  shared: fc.boolean(),
  together: fc.boolean(),
})
const script = fc.record({ step: fc.constantFrom(...steps), after: fc.integer({ min: 0, max: 2 }) })
const list = { minLength: 2, maxLength: 8 }

for (const threads of [1, 2]) {
  // In parts: each has the time limit of a test.
  for (let part = 1; part <= runs(10, 1); part++) {
    t.test(
      `two agents share nothing but the upstream, whatever it does, ${threads} of threads, part ${part}`,
      async t => {
        const play = await start(t, threads)
        const property = fc.asyncProperty(fc.array(asked, list), fc.array(script, list), play)
        await t.resolves(fc.assert(property, { numRuns: runs(1_000, 60) }))
      },
    )
  }
}
