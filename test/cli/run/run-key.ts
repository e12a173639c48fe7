import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import t from 'tap'
import { openRunKey } from '../../../src/cli/run/run-key.ts'
import { createClock } from '../../fixtures/clock.ts'
import { eventually, testConfig } from '../../fixtures/gateway.ts'
import { startRun } from '../../fixtures/run-command.ts'

const hourMs = 3_600_000

const { gateway } = await startRun(t)
const { id } = await gateway.agent({ name: 'tour' })
const at = { name: gateway.url, secure: false, options: { host: '127.0.0.1', port: gateway.port } }

interface KeyView {
  readonly id: string
}
const keys = async () => JSON.parse((await gateway.manage('GET', `/agents/${id}/keys`)).text) as KeyView[]

async function open(options: { port: number } = at.options) {
  const clock = createClock(Date.now())
  const complaints: string[] = []
  const address = { ...at, options: { ...at.options, ...options } }
  const key = await openRunKey({
    configuration: { config: testConfig(), given: new Map(), file: undefined, baseDirectory: gateway.directory },
    ...{ gateway: address, agent: 'tour', pid: process.pid, clock, checkMs: 10 },
    complain: text => complaints.push(text),
  })
  return { clock, key, complaints, address }
}

t.test('a run gets a new key after half a day, the one before stays, and those before that are revoked', async t => {
  const { clock, key, complaints } = await open()
  const seen = [key.current()]
  const ids: string[] = []
  for (let day = 0; day < 3; day++) {
    ids.push(...(await keys()).map(one => one.id).filter(one => !ids.includes(one)))
    clock.advance(12 * hourMs)
    seen.push(
      await eventually(
        () => key.current(),
        now => now !== seen.at(-1),
      ),
    )
  }
  t.equal(new Set(seen).size, 4)
  const left = await eventually(keys, all => all.length === 2 && !all.some(one => one.id === ids[0]))
  t.ok(left.some(one => one.id === ids[2]))
  await key.end()
  t.strictSame(await keys(), [])
  t.strictSame(complaints, [])
})

t.test('a key that is being made at the end of the run is revoked as well', async t => {
  const { clock, key, address } = await open()
  const answers = Promise.withResolvers<void>()
  let connections = 0
  // The first connection is for a token, the second one for the key.
  const relay = createServer(client => {
    connections += 1
    const upstream = connect(gateway.port, '127.0.0.1')
    client.on('error', () => {}).pipe(upstream)
    upstream.on('error', () => {})
    if (connections === 2) void answers.promise.then(() => upstream.pipe(client))
    else upstream.pipe(client)
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => relay.close())
  address.options.port = (relay.address() as AddressInfo).port
  clock.advance(12 * hourMs)
  await eventually(
    () => connections,
    count => count === 2,
  )
  const ended = key.end()
  // Time in which it would end if it did not wait.
  for (let looks = 0; looks < 20; looks++) await keys()
  answers.resolve()
  await ended
  t.strictSame(await keys(), [])
})

t.test('a gateway that does not answer when a key is due is asked again, with one complaint', async t => {
  const { clock, key, complaints, address } = await open()
  const first = key.current()
  address.options.port = 1
  clock.advance(12 * hourMs)
  await eventually(
    () => complaints.length,
    count => count > 0,
  )
  t.match(complaints, [/the key was not renewed: No gateway answers at /])
  address.options.port = gateway.port
  t.not(
    await eventually(
      () => key.current(),
      now => now !== first,
    ),
    first,
  )
  t.equal(complaints.length, 1)
  await key.end()
})
