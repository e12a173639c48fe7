/** T87, refresh tokens: rotations over three gateways that are killed, and tokens that reach no other agent. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileTest } from '../fixtures/file-test.ts'
import { fault } from '../fixtures/fleet/fault.ts'
import type { Member } from '../fixtures/fleet/member.ts'
import { loopbackCaFile, startLoopbackOrigin } from '../fixtures/origin.ts'

const rotations = 500
const requests = 10_000
const names = ['one', 'two'] as const
type Name = (typeof names)[number]

/** What the server knows of a grant: an old token that comes again takes it back. */
interface Grant {
  valid: string
  issuedAt: number
  reuses: { readonly issuedAt: number; readonly at: number }[]
}

let issued = 0
/** Resolves when the server is about to answer the next exchange. */
let exchange = Promise.withResolvers<void>()
const grants: Record<Name, Grant> = {
  one: { valid: 'granted-canary-one-0', issuedAt: 0, reuses: [] },
  two: { valid: 'granted-canary-two-0', issuedAt: 0, reuses: [] },
}
const owners = new Map<string, Name>()

const server = await startLoopbackOrigin(fileTest(), async (req, res) => {
  if (req.url === '/token') await answerToken(req, res)
  else res.end(owners.get(req.headers.authorization ?? '') ?? 'nobody')
})

async function answerToken(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { refresh_token: sent = '', client_id: client } = Object.fromEntries(new URLSearchParams(await text(req)))
  const grant = grants[client as Name]
  if (sent !== grant.valid) {
    if (grant.valid !== '') grant.reuses.push({ issuedAt: grant.issuedAt, at: performance.now() })
    grant.valid = ''
    res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
    return
  }
  issued += 1
  Object.assign(grant, { valid: `refresh-canary-${client}-${issued}`, issuedAt: performance.now() })
  const access = `access-canary-${issued}`
  owners.set(`Bearer ${access}`, client as Name)
  exchange.resolve()
  exchange = Promise.withResolvers()
  res.end(JSON.stringify({ access_token: access, refresh_token: grant.valid, expires_in: 20 }))
}

const config = {
  Proxy: { CaFile: loopbackCaFile },
  Credentials: names.map(Name => ({
    ...{ Name, Type: 'RefreshToken', ClientId: Name, ClientAuth: 'None', TokenUrl: `${server.url}/token` },
  })),
  Upstreams: names.map(name => ({ Host: `127.0.0.1:${server.port}`, Policy: name, Credential: name })),
}

const title = 'two refresh tokens are rotated 500 times by three gateways that are killed, while two agents call'
fault(33, title, { config, long: true }, async (t, fleet) => {
  const { members, a } = fleet
  const at = (): Member => {
    const running = members.filter(({ isRunning }) => isRunning)
    return running[Math.floor(Math.random() * running.length)] ?? a
  }
  for (const name of names) await fleet.manage(a, 'POST', '/policies', { name, default: 'Allow' })
  const bots = { one: await fleet.bot({ policyName: 'one' }), two: await fleet.bot({ policyName: 'two' }) }
  const connect = async (name: Name) => {
    grants[name].valid ||= `granted-canary-${name}-${issued}`
    return fleet.manage(at(), 'PUT', `/credentials/${name}/token`, { refreshToken: grants[name].valid })
  }
  for (const name of names) t.equal((await connect(name)).status, 200)

  const killedAt: number[] = []
  let [isOver, answered, crossed] = [false, 0, 0]
  const statuses = new Map<number, number>()
  const call = async () => {
    while (!isOver) {
      const name = names[Math.floor(Math.random() * 2)]!
      const path = `/proxy/${server.url}/api/${Math.random()}`
      const made = await fleet.call(at(), { method: 'GET', path, token: bots[name].token })
      statuses.set(made.status, (statuses.get(made.status) ?? 0) + 1)
      if (made.status !== 200) continue
      answered += 1
      if (made.text !== name) crossed += 1
    }
  }
  const renew = async () => {
    while (!isOver) {
      const name = names[Math.floor(Math.random() * 2)]!
      await fleet.manage(at(), 'POST', `/credentials/${name}/renew`)
      if (grants[name].valid === '') await connect(name)
    }
  }
  const kill = async () => {
    while (!isOver) {
      await sleep(4_000 + 4_000 * Math.random())
      // Often the one that has just sent a refresh token.
      await exchange.promise
      const victim = at()
      await victim.kill()
      killedAt.push(performance.now())
      await victim.start()
    }
  }
  const work = [...Array.from({ length: 6 }, call), ...Array.from({ length: 4 }, renew), kill()]
  while (issued < rotations || answered < requests) {
    await sleep(10_000)
    t.comment(`rotations ${issued}, kills ${killedAt.length}, answers ${answered}`)
  }
  isOver = true
  await Promise.all(work)
  await fleet.heal()

  const reuses = names.flatMap(name => grants[name].reuses)
  const unexplained = reuses.filter(({ issuedAt, at }) => !killedAt.some(killed => killed > issuedAt && killed < at))
  t.comment(`rotations ${issued}, kills ${killedAt.length}, reuses ${reuses.length}, answers ${answered}`)
  t.comment(`statuses ${JSON.stringify([...statuses])}`)
  t.strictSame(unexplained, [], 'a token came again only after a kill between its exchange and its commit')
  t.equal(crossed, 0, 'no agent got the token of another')
  const rows = await fleet.db.query(
    "select coalesce(string_agg(c::text || encode(sealed, 'escape'), ''), '') from credentials c",
  )
  const changes = await fleet.db.query("select coalesce(string_agg(c::text, ''), '') from changes c")
  const seen = [rows.rows, changes.rows, await fleet.trail(), members.map(member => member.log())]
  t.notMatch(JSON.stringify(seen), /canary/)
})
