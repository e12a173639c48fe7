import t from 'tap'
import { healthHandlers, proxyHealthHandlers } from '../../src/management/health.ts'
import { createClock } from '../fixtures/clock.ts'
import { startControl } from '../fixtures/control.ts'

const span = /^\d+\.\d\d:\d\d:\d\d\.\d{7}$/

t.test('a gateway whose store answers is Healthy, without a token', async t => {
  const { call } = await startControl(t)
  const { status, json, headers } = await call('GET', '/health?x=../')
  t.match(
    { status, json },
    {
      status: 200,
      json: {
        status: 'Healthy',
        healthCheckDuration: span,
        parts: { storage: 'Healthy', threads: 'Healthy', log: 'Healthy' },
      },
    },
  )
  t.equal(headers.get('cache-control'), 'no-store')
  t.match(await call('HEAD', '/health'), { status: 200, text: '' })
})

t.test('a store that fails makes it Unhealthy, 503', async t => {
  const { call, store } = await startControl(t)
  await store.close()
  t.match(await call('GET', '/health'), {
    status: 503,
    json: { status: 'Unhealthy', healthCheckDuration: span, parts: { storage: 'Unhealthy' } },
  })
})

t.test('a check that hangs counts as failed when the time is up', async t => {
  const handlers = healthHandlers({
    checks: { storage: () => new Promise(() => {}) },
    watched: {},
    timeLimit: 5,
    clock: createClock(),
  })
  const reply = await handlers['getHealth']!({} as never)
  t.match(reply, { status: 503, body: /"parts":\{"storage":"Unhealthy"\}/ })
})

t.test('a check that throws at once counts as failed', async t => {
  const checks = {
    storage: () => {
      throw new TypeError('wrong')
    },
  }
  const handlers = healthHandlers({ checks, watched: {}, timeLimit: 1_000, clock: createClock() })
  t.match(await handlers['getHealth']!({} as never), { status: 503 })
})

t.test('calls that come while the checks run share them', async t => {
  let checks = 0
  const gate = Promise.withResolvers<void>()
  const check = () => {
    checks++
    return gate.promise
  }
  const handlers = healthHandlers({ checks: { storage: check }, watched: {}, timeLimit: 1_000, clock: createClock() })
  const replies = [handlers['getHealth']!({} as never), handlers['getHealth']!({} as never)]
  gate.resolve()
  t.match(await Promise.all(replies), [{ status: 200 }, { status: 200 }])
  t.equal(checks, 1)
})

t.test('the outcome of a check holds for a second, so that a flood of calls writes nothing', async t => {
  let checks = 0
  let isWell = true
  const check = async () => {
    checks++
    if (!isWell) throw new Error('gone')
  }
  const clock = createClock()
  const handlers = healthHandlers({ checks: { storage: check }, watched: {}, timeLimit: 1_000, clock })
  for (let call = 0; call < 100; call++) t.match(await handlers['getHealth']!({} as never), { status: 200 })
  t.equal(checks, 1)
  isWell = false
  clock.advance(1_000)
  t.match(await handlers['getHealth']!({} as never), { status: 503 })
  t.equal(checks, 2)
})

t.test('what the gateway can work without is named, and is no reason to be Unhealthy', async t => {
  const watched = { log: () => false }
  const handlers = healthHandlers({ checks: {}, watched, timeLimit: 1_000, clock: createClock() })
  t.match(await handlers['getHealth']!({} as never), { status: 200, body: /"parts":\{"log":"Unhealthy"\}/ })
})

t.test('liveness asks only whether every thread responds, not for the database', async t => {
  const { call, store } = await startControl(t)
  await store.close()
  t.match(await call('GET', '/health/live'), { status: 200, json: { status: 'Healthy' } })
  const { getLiveness } = proxyHealthHandlers({ proxyRefusal: () => 'fenced', threadsAnswer: () => false })
  t.match(await getLiveness!({} as never), {
    status: 503,
    body: /"Unhealthy"/,
    headers: ['Content-Type', /json/, 'Retry-After', '1'],
  })
})
