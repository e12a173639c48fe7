/**
 * Threat T21 of SECURITY.md: whatever an upstream does, no byte of what one agent sends or gets, no connection that it has
 * authenticated and no cookie of it reaches another. Two agents share the connections to an upstream that follows a random
 * script. Each request and each answer names its agent, and an answer whose rights its connection has.
 */
import type { OnReadOpts, Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import fc from 'fast-check'
import { createOrigin } from '../../src/base/origin.ts'
import { Connections } from '../../src/upstream/connections.ts'
import { Http1Connection } from '../../src/upstream/http1.ts'
import { createClock } from '../fixtures/clock.ts'
import { runs } from '../fixtures/runs.ts'
import t from '../fixtures/tap.ts'
import { requestOf, Told } from '../fixtures/upstream.ts'

const turn = () => new Promise(setImmediate)

const steps = [
  'plain',
  'chunked',
  'interim first',
  'announced, and late',
  'a second answer at once',
  'a second answer while idle',
  'a challenge',
  'before the body came',
  'reset',
  'cut midway',
  'longer than it says',
  'junk behind the chunks',
  'close, but open',
  'end behind it',
] as const
type Step = (typeof steps)[number]

interface Script {
  readonly step: Step
  /** Turns of the event loop until what comes late does. */
  readonly after: number
}

/** One connection of the upstream. */
class Peer {
  readonly socket: Duplex
  readonly #world: World
  readonly #onread: OnReadOpts
  #received = ''
  #requests = 0
  /** Whose rights the connection has. */
  #owner = 'nobody'
  #answered = false

  constructor(world: World, onread: OnReadOpts) {
    this.#world = world
    this.#onread = onread
    this.socket = new Duplex({
      read() {},
      write: (chunk: Buffer, _encoding, done) => {
        done()
        this.#take(chunk.toString('latin1'))
      },
    })
  }

  #take(text: string): void {
    this.#received += text
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = /^(GET|HEAD|POST) \/([AB]) HTTP\/1\.1\r\n/.exec(this.#received)
    if (head === null) throw new Error(`not a request: ${JSON.stringify(this.#received)}`)
    const [, method = '', agent = ''] = head
    if (this.#received.includes(agent === 'A' ? 'of-B' : 'of-A')) this.#world.leaks.push(`request: ${this.#received}`)
    if (/negotiate/i.test(this.#received) && this.#owner === 'nobody') this.#owner = agent
    const length = Number(/content-length: (\d+)/i.exec(this.#received)?.[1] ?? 0)
    const whole = this.#received.length >= end + 4 + length
    if (!this.#answered && (whole || this.#world.next?.step === 'before the body came')) this.#answer(method, agent)
    if (!whole) return
    this.#received = this.#received.slice(end + 4 + length)
    this.#answered = false
    if (this.#received !== '') this.#take('')
  }

  #answer(method: string, agent: string): void {
    this.#answered = true
    this.#requests += 1
    const { step, after } = this.#world.shift()
    const text = `of-${agent} with the rights of ${this.#owner}`
    const whole = `HTTP/1.1 200 OK\r\nSet-Cookie: of-${agent}\r\nContent-Length: ${text.length}\r\n\r\n${text}`
    const answer = method === 'HEAD' ? whole.slice(0, -text.length) : whole
    const chunks = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
    const chunked = method === 'HEAD' ? answer : chunks
    const later = (work: () => void) => this.#world.later.push({ turns: after, work })
    const soon = (bytes: string) => later(() => this.say(bytes))
    soon(this.#bytesOf(step, { answer, chunked, whole, agent, method }))
    const seen = this.#requests
    if (step === 'announced, and late' || step === 'close, but open') {
      this.#world.later.push({ turns: after + 2, work: () => this.say(whole) })
    } else if (step === 'a second answer while idle') {
      this.#world.later.push({ turns: after + 1, work: () => this.#requests === seen && this.say(whole) })
    } else if (step === 'reset' || step === 'cut midway') later(() => this.socket.destroy(new Error('reset')))
    else if (step === 'end behind it') later(() => this.socket.push(null))
    else if (step === 'a challenge') this.#owner = agent
  }

  #bytesOf(
    step: Step,
    made: { answer: string; chunked: string; whole: string; agent: string; method: string },
  ): string {
    const { answer, chunked, whole, agent, method } = made
    switch (step) {
      case 'chunked':
        return chunked
      case 'interim first':
        return `HTTP/1.1 103 x\r\nLink: </of-${agent}>\r\n\r\n${answer}`
      case 'announced, and late':
        if (method === 'HEAD') return answer
        return `HTTP/1.1 ${agent === 'A' ? '204' : '304'} x\r\nContent-Length: ${whole.length}\r\n\r\n`
      case 'a second answer at once':
        return answer + whole
      case 'a challenge':
        return answer
          .replace('200 OK', '401 x')
          .replace('Set-Cookie', 'WWW-Authenticate: Basic realm="x", NTLM\r\nSet-Cookie')
      case 'reset':
        return ''
      case 'cut midway':
        return answer.slice(0, -3)
      case 'longer than it says':
        return answer.replace(/Content-Length: \d+/, 'Content-Length: 4')
      case 'junk behind the chunks':
        return `${chunked}HTTP/1.1 200 OK\r\n`
      case 'close, but open':
        return answer.replace('Set-Cookie', 'Connection: close\r\nSet-Cookie')
      default:
        return answer
    }
  }

  say(bytes: string): void {
    if (this.socket.destroyed || bytes === '') return
    const buffer = this.#onread.buffer as Uint8Array
    const read = Buffer.from(bytes, 'latin1')
    buffer.set(read)
    this.#onread.callback(read.length, buffer)
  }
}

class World {
  readonly peers: Peer[] = []
  readonly leaks: string[] = []
  later: { turns: number; readonly work: () => void }[] = []
  readonly #script: Script[]

  constructor(script: readonly Script[]) {
    this.#script = [...script]
  }

  get next(): Script | undefined {
    return this.#script[0]
  }

  shift(): Script {
    return this.#script.shift() ?? { step: 'plain', after: 0 }
  }

  /** What comes in this turn of the event loop. */
  deliver(): void {
    const due = this.later.filter(({ turns }) => turns <= 0)
    this.later = this.later.filter(({ turns }) => turns > 0)
    for (const one of this.later) one.turns -= 1
    for (const { work } of due) work()
  }
}

interface Asked {
  readonly agent: 'A' | 'B'
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly authenticates: boolean
  /** It is asked before what the upstream says in this turn is read. */
  readonly first: boolean
  /** Turns until the next request. */
  readonly pause: number
}

function send(connections: Connections, resolution: object, { agent, method, authenticates }: Asked): Told {
  const told = new Told()
  const fields = ['X-Agent', `of-${agent}`, ...(authenticates ? ['Authorization', `Negotiate of-${agent}`] : [])]
  const body = new PassThrough()
  const request = { method, path: `/${agent}`, fields, ...(method === 'POST' ? { body, bodyLength: 10 } : {}) }
  connections.send(createOrigin('http', 'up.example', 80), resolution as never, requestOf(request), told)
  if (method === 'POST') {
    body.write(`of-${agent} `)
    setImmediate(() => body.end(`of-${agent} `))
  }
  return told
}

function problemOf(told: Told, { agent }: Asked): string | undefined {
  const other = agent === 'A' ? 'B' : 'A'
  const got = `${told.head?.fields.join(' ')} ${told.text}`
  if (got.includes(`of-${other}`)) return `${agent} got what is for ${other}: ${got}`
  return got.includes(`rights of ${other}`) ? `${agent} has the rights of ${other}` : undefined
}

async function play(asked: readonly Asked[], script: readonly Script[]): Promise<void> {
  const world = new World(script)
  const timeouts = {
    headersTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    eventStreamIdleMs: 60_000,
    connectTimeoutMs: 1_000,
  }
  const limits = { perOrigin: 2, total: 2, maxWaiting: 100, waitMs: 60_000, http2Hosts: [] }
  const openHttp1 = (authority: string, settings: ConstructorParameters<typeof Http1Connection>[1]) =>
    new Http1Connection(authority, settings, (onread, done) => {
      const peer = new Peer(world, onread as OnReadOpts)
      world.peers.push(peer)
      process.nextTick(done, null, peer.socket as Socket)
    })
  const connections = new Connections({ ...timeouts, ...limits, openHttp1 }, createClock())
  const resolution = { addresses: ['127.0.0.1'], validUntil: Number.POSITIVE_INFINITY }
  const tolds: Told[] = []
  for (const one of asked) {
    if (one.first) tolds.push(send(connections, resolution, one))
    world.deliver()
    if (!one.first) tolds.push(send(connections, resolution, one))
    for (let i = 0; i <= one.pause; i++) {
      await turn()
      if (i < one.pause) world.deliver()
    }
  }
  // Until everything has come, and then whatever still waits ends with its connection.
  for (let i = 0; i < 12 && (i < 4 || tolds.some(({ ends }) => ends === 0)); i++) {
    world.deliver()
    await turn()
  }
  connections.close()
  for (const { socket } of world.peers) socket.destroy()
  await Promise.all(tolds.map(({ over }) => over))
  const problem =
    world.leaks[0] ?? tolds.map((told, i) => problemOf(told, asked[i] as Asked)).find(found => found !== undefined)
  if (problem !== undefined) throw new Error(problem)
}

const asked: fc.Arbitrary<Asked> = fc.record({
  agent: fc.constantFrom('A' as const, 'B' as const),
  method: fc.constantFrom('GET' as const, 'GET' as const, 'HEAD' as const, 'POST' as const),
  authenticates: fc.integer({ min: 0, max: 7 }).map(n => n === 0),
  first: fc.boolean(),
  pause: fc.integer({ min: 0, max: 3 }),
})
const script = fc.record({ step: fc.constantFrom(...steps), after: fc.integer({ min: 0, max: 2 }) })

t.test('two agents that share an upstream share nothing else, whatever it does', async () => {
  const list = { minLength: 2, maxLength: 8 }
  await fc.assert(fc.asyncProperty(fc.array(asked, list), fc.array(script, list), play), { numRuns: runs(10_000) })
})
