/**
 * Figures of human in the loop on embedded SQLite, every write durable: `node bench/hitl.ts`. Linux, as the others.
 * The goals stand beside them; the exit code is 1 when one is missed.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { text } from 'node:stream/consumers'
import { isRefusal, refuse } from '../src/base/refusals.ts'
import { createEventLog } from '../src/hitl/events.ts'
import type { Person, Suspension } from '../src/hitl/model.ts'
import { createQueue } from '../src/hitl/queue.ts'
import { systemClock } from '../src/runtime/clock.ts'
import { openSqliteStore } from '../src/storage/sqlite/open.ts'
import { receiversOf } from '../test/fixtures/hooks.ts'
import { measureTraffic } from './lib/hitl-traffic.ts'
import { readOptions } from './lib/options.ts'

readOptions('usage: node bench/hitl.ts\n\nIt has no options.\n', {})

const waiting = 10_000
const contested = 200
const rivals = 50

const reviewer = (index: number): Person => ({ id: `reviewer-${index}`, ownerId: 'people', roles: ['reviewer'] })

function suspension(index: number): Suspension {
  return {
    request: {
      method: 'POST',
      url: `https://api.shop.example/v1/refunds/${index}`,
      rawHeaders: ['Content-Type', 'application/json', 'Authorization', 'Bearer of-the-upstream', 'Accept', '*/*'],
      body: Buffer.from(JSON.stringify({ amount: 250, note: 'x'.repeat(900) })),
    },
    facts: { rawHeaders: ['Host', 'gateway.example'], claims: { sub: `agent-${index % 100}` }, clientIp: '192.0.2.1' },
    decision: {
      source: 'rule',
      policy: 'support',
      policyVersion: 'v1',
      rule: 'refunds',
      reason: 'rule "refunds": input.body.amount gt 100 (was 250)',
      publicReason: 'held for review',
      ...{ ruleReason: null, title: null, operation: null },
      approvals: 1,
      matched: [{ condition: 'input.body.amount gt 100', actual: 250 }],
      risk: null,
    },
    agent: { id: `agent-${index % 100}`, ownerId: 'team' },
    requestId: null,
  }
}

interface Figure {
  readonly what: string
  readonly value: number
  readonly unit: string
  readonly goal: string
  readonly met: boolean
}

const atLeast = (what: string, value: number, unit: string, goal: number): Figure => {
  return { what, value, unit, goal: `>= ${goal}`, met: value >= goal }
}
const atMost = (what: string, value: number, unit: string, goal: number): Figure => {
  return { what, value, unit, goal: `<= ${goal}`, met: value <= goal }
}

/** A clock that jumps: ten thousand requests expire in one moment. */
let ahead = 0
const clock = { now: () => systemClock.now() + ahead, steady: systemClock.steady }
const directory = mkdtempSync(join(tmpdir(), 'hitl-bench-'))
const store = await openSqliteStore({ directory, clock })
const faults: string[] = []
const report = (what: string) => void faults.push(what)
const sent = new Map<string, number>()

async function* answer() {
  yield Buffer.from('{"ok":true}')
}

const queue = createQueue({
  store,
  clock,
  member: { id: 'bench', name: 'bench' },
  settings: {
    Threshold: 0.8,
    WaitSeconds: 0,
    TimeoutSeconds: 3_600,
    MaxPendingRequests: 1_000_000,
    MaxPendingPercentPerAgent: 100,
    FourEyes: 'self',
    MaxStoredBodyBytes: 1_048_576,
    MaxStoredBytes: 1e12,
    MaxStoredResponseBytes: 1_048_576,
    RetentionSeconds: 86_400,
    LeaseSeconds: 150,
    ...receiversOf(),
  },
  sealingKeys: [Buffer.alloc(32, 1)],
  tokenHeader: 'Gateway-Authorization',
  events: createEventLog({ capacity: 1_000, describe: ({ data }) => data, report }),
  noteVerdict: () => {},
  raiseOf: () => refuse('not_found'),
  noteRefusal: entry => store.audit.append(entry),
  onDecided: () => {},
  send: async (_, { hitlId }) => {
    sent.set(hitlId, (sent.get(hitlId) ?? 0) + 1)
    return { kind: 'answered', status: 200, rawHeaders: [], body: answer(), trailers: () => [] }
  },
  agentProblem: () => undefined,
  reviewerOf: id => ({ id, ownerId: 'people', roles: ['reviewer'] }),
  agentName: () => undefined,
  addedFields: () => [],
  stopping: new AbortController().signal,
  onFull: () => {},
  report,
})

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const start = systemClock.steady()
  const value = await work()
  return { ms: systemClock.steady() - start, value }
}

async function suspendOne(index: number): Promise<string> {
  const result = await queue.suspend(suspension(index))
  if (isRefusal(result)) throw new TypeError(result.detail)
  return result.id
}

/** `count` suspensions, 64 at once as from as many agents. */
async function suspendMany(count: number): Promise<string[]> {
  const ids: string[] = []
  let next = 0
  const lane = async () => {
    while (next < count) ids.push(await suspendOne(next++))
  }
  await Promise.all(Array.from({ length: 64 }, lane))
  return ids
}

async function listed(): Promise<string[]> {
  return (await Array.fromAsync(queue.pending())).flat()
}

/** Whether exactly one of the rivals won. */
async function contest(id: string): Promise<boolean> {
  const verdicts = Array.from({ length: rivals }, async (_, index) => {
    const verdict = { reviewer: reviewer(index), requestId: null }
    const result = index % 2 === 0 ? await queue.approve(id, verdict) : await queue.deny(id, verdict)
    if (!isRefusal(result) && 'body' in result && result.body !== undefined && 'kind' in result) await text(result.body)
    return !isRefusal(result)
  })
  return (await Promise.all(verdicts)).filter(Boolean).length === 1
}

async function measure(): Promise<Figure[]> {
  const first = await timed(() => suspendMany(contested))
  const contests = await timed(() => Promise.all(first.value.map(contest)))
  const won = contests.value.filter(Boolean).length
  const doubles = [...sent.values()].filter(count => count > 1).length

  const filling = await timed(() => suspendMany(waiting))
  const single = await timed(async () => {
    for (let index = 0; index < 100; index++) await suspendOne(index)
  })
  const listing = await timed(listed)

  ahead = 3_600_000
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const sweeping = await timed(() => queue.sweep())
  delay.disable()
  const left = (await listed()).length

  return [
    atLeast('suspensions, 64 at once, up to 10,000 waiting', waiting / (filling.ms / 1_000), '/s', 300),
    atLeast('suspensions, one by one, over 10,000 waiting', 100 / (single.ms / 1_000), '/s', 300),
    atMost(`listing ${listing.value.length} waiting requests`, listing.ms, 'ms', 200),
    atLeast(`contests of ${rivals} verdicts with one winner`, won, `of ${contested}`, contested),
    atMost('requests sent more than once', doubles, '', 0),
    atLeast('verdicts in those contests', (contested * rivals) / (contests.ms / 1_000), '/s', 50),
    atMost(`longest stall while ${listing.value.length} requests expire`, delay.max / 1e6, 'ms', 50),
    atMost('time for them to expire', sweeping.ms, 'ms', 10_000),
    atMost('requests left after they expired', left, '', 0),
    atMost('faults', faults.length, '', 0),
  ]
}

/** The same in a whole gateway, as those feel it who are not held. */
async function measureAllowed(): Promise<Figure[]> {
  const { quiet, busy, ratio, disturbed } = await measureTraffic()
  console.log(`while quiet the gateway waited ${Math.round(disturbed * 100)} % of the time for its core`)
  const tails = `${quiet.toFixed(1)} ms quiet, ${busy.toFixed(1)} ms`
  return [atMost(`p99 of allowed requests: ${tails} while others are held, listed and decided`, ratio, 'x', 2)]
}

try {
  const figures = [...(await measure()), ...(await measureAllowed())]
  for (const { what, value, unit, goal, met } of figures) {
    console.log(`${met ? 'ok  ' : 'MISS'} ${what}: ${Math.round(value * 10) / 10} ${unit} (goal ${goal})`)
  }
  if (figures.some(figure => !figure.met)) process.exitCode = 1
} finally {
  await store.close()
  rmSync(directory, { recursive: true })
}
