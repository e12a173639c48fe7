/** Gateways on one schema take what the others sign and seal: keys are renewed in one after the other, or not at all. */
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { onDatabase, startBare, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema, leaveMember } from '../fixtures/postgres.ts'

const older = 'T2Fa8Q1xKq0wq0nZ3JrV7cD5sYbL9uPe'
const newer = 'mB7tQz0Lr4Vn9Xc2Kd5Ws8Hy1Jg6Pf3A'

interface Keys {
  readonly Secret: string
  readonly PreviousSecrets?: readonly string[]
}

type Schema = Awaited<ReturnType<typeof createSchema>>

function configWith(
  settings: Schema,
  { tokens, sealing = tokens, fence = 5 }: { tokens: Keys; sealing?: Keys; fence?: number },
) {
  // Made above with these keys.
  const { Security, ...rest } = onDatabase(settings) as { Security: object }
  return {
    ...{ ...rest, Fleet: { FenceAfterSeconds: fence } },
    Security: { ...Security, AgentAuth: { TokenIssuance: tokens }, Sealing: sealing },
  }
}

const start = (t: Test, settings: Schema, tokens: Keys) => startGateway(t, { config: configWith(settings, { tokens }) })

t.test('keys are renewed in one gateway after the other, and no call fails', async t => {
  const origin = await startOrigin(t)
  const settings = await createSchema(t)
  const fleet: TestGateway[] = []
  for (let n = 0; n < 3; n++) fleet.push(await start(t, settings, { Secret: older }))
  const policy = await fleet[0]!.policy({ name: 'ask', default: 'Hitl' })
  const tokens = [(await fleet[0]!.agent()).token]
  const asking = await fleet[0]!.agent({ policyName: policy })
  const held: string[] = []

  async function all(): Promise<void> {
    for (const gateway of fleet) {
      for (const token of tokens) t.equal((await gateway.proxy(token, origin.url)).status, 200)
      const answer = await gateway.proxy(asking.token, `${origin.url}/${randomUUID()}`, { method: 'POST', body: 'x' })
      t.equal(answer.status, 202)
      const status = await gateway.manage('GET', answer.headers.get('location')!)
      held.push(JSON.parse(status.text).id)
    }
  }

  const steps: readonly Keys[] = [
    { Secret: older, PreviousSecrets: [newer] },
    { Secret: newer, PreviousSecrets: [older] },
  ]
  for (const keys of steps) {
    for (let n = 0; n < 3; n++) {
      await fleet[n]!.close()
      fleet[n] = await start(t, settings, keys)
      tokens.push((await fleet[n]!.agent()).token)
      await all()
    }
  }
  for (const [n, id] of held.entries()) {
    t.equal(
      (await fleet[n % 3]!.manage('POST', `/hitl/${id}/approve`)).status,
      200,
      'it opens what any of them has sealed',
    )
  }
})

t.test('a gateway with keys or a fence that the others do not share is refused, and nothing is created', async t => {
  const settings = await createSchema(t)
  const running = await start(t, settings, { Secret: older })
  const { rows: before } = await settings.admin.query(
    'select (select count(*) from audit) as a, (select count(*) from members) as m',
  )
  const cases: readonly [object, RegExp][] = [
    [
      configWith(settings, { tokens: { Secret: newer } }),
      /^The gateway \S+ does not accept Security:AgentAuth:TokenIssuance:Secret of this one\. [^\n]+$/,
    ],
    [
      configWith(settings, { tokens: { Secret: older }, sealing: { Secret: newer } }),
      /^The gateway \S+ does not accept Security:Sealing:Secret of this one\. [^\n]+$/,
    ],
    [
      configWith(settings, { tokens: { Secret: older }, fence: 3 }),
      /^Fleet:FenceAfterSeconds is 3 here and 5 in the gateway [^\n]+$/,
    ],
  ]
  for (const [config, message] of cases) {
    await t.rejects(startBare(t, { config: { ...config } }), { message })
  }
  const { rows: after } = await settings.admin.query(
    'select (select count(*) from audit) as a, (select count(*) from members) as m',
  )
  t.strictSame(after, before)
  t.equal((await running.manage('GET', '/agents')).status, 200)
  const { rows } = await settings.admin.query<{ all: string }>(`select json_agg(m)::text as all from members m`)
  t.notMatch(rows[0]?.all, older)
})

t.test('one with other keys that stopped without a word counts until it cannot serve', async t => {
  const settings = await createSchema(t)
  await (await start(t, settings, { Secret: older })).close()
  await leaveMember(settings.admin, 'dead')
  const begun = performance.now()
  await start(t, settings, { Secret: newer })
  t.ok(performance.now() - begun > 2_000, 'it may have served until then')
  const { rows } = await settings.admin.query('select name from members where name = $1', ['dead'])
  t.strictSame(rows, [], 'it must register again')
})
