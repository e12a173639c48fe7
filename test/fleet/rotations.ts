/** T87, refresh tokens that their server replaces with each use, while the gateways that exchange them are killed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileTest } from '../fixtures/file-test.ts'
import { fault, inCampaign } from '../fixtures/fleet/fault.ts'
import { codeOf } from '../fixtures/fleet/ledger.ts'
import { startRotatingServer } from '../fixtures/fleet/rotating-server.ts'
import { eventually } from '../fixtures/gateway.ts'
import { loopbackCaFile } from '../fixtures/origin.ts'

const names = Array.from({ length: inCampaign ? 10 : 4 }, (_, n) => `account-${n}`)
const [rotations, leastKills] = inCampaign ? [500, 30] : [40, 3]
/** A machine may have much else to do. */
const longestMs = 3_600_000

const server = await startRotatingServer(fileTest())
const host = `127.0.0.1:${server.port}`
const config = {
  Proxy: { CaFile: loopbackCaFile },
  Credentials: names.map(Name => ({
    ...{ Name, Type: 'RefreshToken', ClientId: 'gateway', ClientAuth: 'None', TokenUrl: `${server.url}/token/${Name}` },
    TimeoutSeconds: 2,
  })),
  Upstreams: names.map(Credential => ({ Host: host, Paths: [`/${Credential}/`], Credential })),
}

fault(33, 'refresh tokens rotate over three gateways that are killed', { config }, async (t, fleet) => {
  t.setTimeout(longestMs)
  const { members } = fleet
  const bot = await fleet.bot()
  const connect = (name: string) =>
    fleet.manage(fleet.a, 'PUT', `/credentials/${name}/token`, { refreshToken: server.grant(name) })
  for (const name of names) await connect(name)

  const kills: number[] = []
  const [codes, reconnected] = [new Set<string | undefined>(), { count: 0 }]
  let isOver = false
  /** Calls with a credential through all gateways; a person connects it again where its server took the grant back. */
  const use = async (name: string) => {
    for (let n = 0; !isOver; n++) {
      const at = members[n % members.length]!
      const path = `/proxy/${server.url}/${name}/${n}`
      const headers = { 'Gateway-Authorization': `Bearer ${bot.token}` }
      const call = await fleet.call(at, { method: 'GET', path, headers })
      if (call.status === 200) t.equal(call.text, name, 'the upstream has seen a token of this credential')
      else codes.add(codeOf(call) ?? (call.status === 0 ? 'none' : String(call.status)))
      if (codeOf(call) === 'credential_needed' && (await connect(name)).status === 200) reconnected.count += 1
      await sleep(20)
    }
  }
  const kill = async () => {
    for (let next = 0; !isOver; await sleep(10)) {
      if (server.rotations() < next) continue
      next = server.rotations() + 5
      const member = members[1 + (kills.length % 2)]!
      kills.push(performance.now())
      await member.kill()
      // On a busy machine the database may not answer in the time of a start.
      await eventually(
        () => member.start().catch(() => {}),
        () => member.isRunning,
      )
    }
  }
  const end = async () => {
    while (server.rotations() < rotations || kills.length < leastKills) await sleep(50)
    isOver = true
  }
  await Promise.all([...names.map(use), kill(), end()]).finally(() => {
    isOver = true
  })

  const { reuses, crossed, exchanged } = server
  t.comment(`${server.rotations()} rotations, ${kills.length} kills, ${reuses.length} tokens sent again`)
  t.ok(
    exchanged.every(count => count > 0),
    'each credential was renewed',
  )
  t.strictSame(crossed, [], 'no token went to the API of another credential')
  for (const { first, again } of reuses) {
    t.ok(
      kills.some(at => at > first && at < again),
      'a token was sent again only after a kill',
    )
  }
  t.ok(reconnected.count <= reuses.length, 'a grant was lost only where a token was sent again')
  const expected = ['none', 'credential_needed', 'credential_unavailable', 'fenced', 'shutting_down']
  t.strictSame(
    [...codes].filter(code => !expected.includes(code ?? '')),
    [],
  )
  const logs = members.map(member => member.log()).join('')
  const { rows } = await fleet.db.query("select string_agg(encode(sealed, 'escape'), '') as all from credentials")
  for (const text of [logs, String(rows[0].all), JSON.stringify(await fleet.trail())]) t.notMatch(text, /canary/)
})
