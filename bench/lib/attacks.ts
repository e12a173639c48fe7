/**
 * What hostile, broken and hasty callers do, and what honest ones do beside them. Everything goes to loopback. Paths
 * tell what must become of a request: `/ok` may reach the upstream, `/refused` never, `/held/N` once if approved.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface Battlefield {
  readonly gateway: string
  readonly gatewayPort: number
  readonly upstream: string
  readonly token: string
  readonly admin: string
  /** Answers that cannot be right, by what was sent. */
  readonly wrong: string[]
  /** Requests that were held, by number: what the reviewer was told. */
  readonly verdicts: Map<number, 'approved' | 'denied'>
  readonly statuses: Map<number, number>
}

export type Attack = (field: Battlefield, turn: number) => Promise<void>

interface Call {
  readonly what: string
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Statuses that are right; any below 500 when absent. 429 and 503 always are: there are limits. */
  readonly right?: readonly number[]
}

async function call(field: Battlefield, { what, path, method = 'GET', headers = {}, body, right }: Call) {
  const init: RequestInit = { method, headers: { ...headers } }
  if (body !== undefined) {
    init.body = typeof body === 'string' ? body : JSON.stringify(body)
    init.headers = { 'Content-Type': 'application/json', ...headers }
  }
  const answer = await fetch(field.gateway + path, init)
  const text = await answer.text()
  const { status } = answer
  field.statuses.set(status, (field.statuses.get(status) ?? 0) + 1)
  const fine = status === 429 || status === 503 || (right === undefined ? status < 500 : right.includes(status))
  if (!fine) field.wrong.push(`${what}: ${status} ${text.slice(0, 100)}`)
  return { status, text, headers: answer.headers }
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
const agent = ({ token }: Battlefield) => ({ 'Gateway-Authorization': `Bearer ${token}` })

const honest: Attack = async (field, turn) => {
  const path = `/proxy/${field.upstream}/ok/${turn}`
  await call(field, { what: 'honest', path, headers: agent(field), right: [200] })
}

const denied: Attack = async (field, turn) => {
  const path = `/proxy/${field.upstream}/refused/${turn}`
  await call(field, { what: 'denied', path, headers: agent(field), right: [403] })
}

const forged: Attack = async (field, turn) => {
  const [head = '', body = '', signature = ''] = field.token.split('.')
  const tokens = [
    `${head}.${body}.${signature.slice(0, -4)}AAAA`,
    `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`,
    `${head}.${body}`,
    'x'.repeat(4_000),
  ]
  const headers = { 'Gateway-Authorization': `Bearer ${tokens[turn % tokens.length]}` }
  await call(field, { what: 'forged', path: `/proxy/${field.upstream}/refused/`, headers, right: [401] })
}

const elsewhere: Attack = async (field, turn) => {
  const { port } = new URL(field.upstream)
  const targets = [
    `http://127.0.0.1:${field.gatewayPort}/health`,
    `http://[::1]:${field.gatewayPort}/agents`,
    'http://169.254.169.254/latest/meta-data/',
    `http://127.1:${port}/refused/`,
    `http://2130706433:${port}/refused/`,
    `http://0.0.0.0:${port}/refused/`,
    `http://a@127.0.0.1:${port}/refused/`,
    `http:/127.0.0.1:${port}/refused/`,
    `http://127.0.0.1:${port}/ok/../refused/`,
    `http://127.0.0.1:${port}/ok/%2e%2e/refused/`,
  ]
  const path = `/proxy/${targets[turn % targets.length]}`
  await raw(
    field,
    `GET ${path} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n${tokenLine(field)}\r\n`,
    /^HTTP\/1\.1 (?:400|403|429) /,
  )
}

const tokenLine = ({ token }: Battlefield) => `Gateway-Authorization: Bearer ${token}\r\n`

const smuggled: Attack = async (field, turn) => {
  const hidden = `GET /proxy/${field.upstream}/refused/ HTTP/1.1\r\nHost: g\r\n${tokenLine(field)}\r\n`
  const start = `POST /proxy/${field.upstream}/refused/ HTTP/1.1\r\nHost: g\r\n${tokenLine(field)}`
  const bodies = [
    `${start}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `${start}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `${start}Content-Length: 0\r\nContent-Length: 5\r\n\r\n${hidden}`,
    `${start}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `${start}Host: h\r\n\r\n${hidden}`,
    `${start}X: ${'x'.repeat(20_000)}\r\n\r\n`,
    `${start}${'Y: y\r\n'.repeat(200)}\r\n`,
    `CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: g\r\n\r\n`,
    Buffer.from(Array.from({ length: 200 }, (_, i) => (i * 31 + turn * 17) & 255)).toString('latin1'),
  ]
  await raw(field, bodies[turn % bodies.length] as string, /^HTTP\/1\.1 4/)
}

/** Sends bytes and waits for the end of the connection; the first answer must be as expected. */
async function raw(field: Battlefield, text: string, expected: RegExp): Promise<void> {
  const socket = await dial(field)
  let received = ''
  socket.on('data', chunk => {
    received += chunk
  })
  socket.write(Buffer.from(text, 'latin1'))
  if (!socket.destroyed) await once(socket, 'close')
  if (!expected.test(received)) field.wrong.push(`${text.slice(0, 60)}: ${received.slice(0, 60)}`)
}

async function dial({ gatewayPort }: Battlefield): Promise<Socket> {
  const socket = connect(gatewayPort, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Half a head, half a body, an answer that is not read: and then away. */
const leaving: Attack = async (field, turn) => {
  const socket = await dial(field)
  const texts = [
    'GET /health HTTP/1.1\r\nHost: g\r\nX-',
    'POST /tokens HTTP/1.1\r\nHost: g\r\nContent-Length: 500\r\n\r\n{"agentId":',
    `POST /proxy/${field.upstream}/ok/ HTTP/1.1\r\nHost: g\r\n${tokenLine(field)}Content-Length: 500000\r\n\r\nsome`,
    `GET /proxy/${field.upstream}/ok/large HTTP/1.1\r\nHost: g\r\n${tokenLine(field)}\r\n`,
  ]
  socket.pause()
  socket.write(texts[turn % texts.length] as string)
  await setTimeout((turn * 37) % 1_500)
  socket.destroy()
}

/** Requests that take their connection over, alone and behind others, from clients that reset it sooner or later. */
const takingOver: Attack = async (field, turn) => {
  const socket = await dial(field)
  const health = 'GET /health HTTP/1.1\r\nHost: g\r\n\r\n'
  const asks = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const handshake = `GET /proxy/${field.upstream}/ok/ HTTP/1.1\r\nHost: g\r\n${tokenLine(field)}${asks}${key}`
  const texts = [
    'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n',
    `${handshake}\r\n`,
    `${handshake}Content-Length: 9\r\n\r\nsome`,
    `${handshake}Transfer-Encoding: chunked\r\n\r\n`,
  ]
  socket.write(health.repeat(turn % 3) + texts[turn % texts.length])
  await setTimeout((turn * 37) % 300)
  socket.resetAndDestroy()
}

const garbage: Attack = async (field, turn) => {
  const bodies = [
    '{',
    '[]',
    '{"__proto__":{"roles":["admin"]}}',
    `{"name":${'['.repeat(2_000)}`,
    '{"name":"\ud800"}',
    'null',
  ]
  const paths = [
    '/tokens',
    '/agents',
    '/policies',
    '/policies/x/explain',
    '/hitl/x/approve',
    '/agents/x/policy',
    '/%00',
    '/agents?page=-1',
  ]
  const headers = [{}, bearer(field.token), bearer(field.admin)][turn % 3] as Record<string, string>
  const method = ['POST', 'PUT', 'DELETE', 'PATCH'][turn % 4] as string
  const path = paths[(turn * 7) % paths.length] as string
  await call(field, { what: `${method} ${path}`, path, method, headers, body: bodies[(turn * 5) % bodies.length] })
}

const guessing: Attack = async (field, turn) => {
  const agentId = `00000000-0000-4000-8000-${String(turn).padStart(12, '0')}`
  const body = { agentId, clientSecret: `guess ${turn}` }
  await call(field, { what: 'guess', path: '/tokens', method: 'POST', body, right: [401] })
}

/** Holds a request; its own agent tries to approve it; two reviewers decide at once, or it lapses. */
const contested: Attack = async (field, turn) => {
  const held = await call(field, {
    what: 'hold',
    path: `/proxy/${field.upstream}/held/${turn}`,
    method: 'POST',
    headers: agent(field),
    body: { turn },
    right: [202],
  })
  const id = held.headers.get('location')?.replace('/hitl/status/', '')
  if (id === undefined) return
  const decide = (verb: string, right: readonly number[], token = field.admin) =>
    call(field, { what: verb, path: `/hitl/${id}/${verb}`, method: 'POST', headers: bearer(token), right })
  await decide('approve', [403, 404], field.token)
  if (turn % 4 === 3) return
  const verbs = turn % 4 === 0 ? ['deny', 'deny'] : turn % 4 === 1 ? ['approve', 'approve'] : ['approve', 'deny']
  const answers = await Promise.all(verbs.map(verb => decide(verb, [200, 404, 409])))
  const won = answers.findIndex(({ status }) => status === 200)
  if (won >= 0) field.verdicts.set(turn, verbs[won] === 'approve' ? 'approved' : 'denied')
}

/** An agent that is revoked is out at once. */
const revoked: Attack = async (field, turn) => {
  const credential = { name: 'r', ownerId: 'r', clientSecret: 'a secret for one call' }
  const headers = bearer(field.admin)
  const made = await call(field, {
    what: 'register',
    path: '/agents',
    method: 'POST',
    headers,
    body: credential,
    right: [201],
  })
  if (made.status !== 201) return
  const { id } = JSON.parse(made.text) as { id: string }
  const body = { agentId: id, clientSecret: credential.clientSecret }
  const login = await call(field, { what: 'login', path: '/tokens', method: 'POST', body, right: [200] })
  await call(field, { what: 'revoke', path: `/agents/${id}/revoke`, method: 'POST', headers, right: [200] })
  if (login.status !== 200) return
  const token = (JSON.parse(login.text) as { token: string }).token
  const path = `/proxy/${field.upstream}/refused/revoked/${turn}`
  await call(field, { what: 'revoked', path, headers: { 'Gateway-Authorization': `Bearer ${token}` }, right: [403] })
}

/** With how many of it a second are sent. */
export const attacks: readonly (readonly [Attack, number])[] = [
  [honest, 100],
  [denied, 50],
  [forged, 30],
  [elsewhere, 30],
  [smuggled, 30],
  [leaving, 40],
  [takingOver, 40],
  [garbage, 40],
  [guessing, 20],
  [contested, 15],
  [revoked, 3],
]
