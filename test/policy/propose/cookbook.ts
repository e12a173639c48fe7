/** The agents of the cookbook: their requests are recorded, and rules are proposed from them. */
import { readdirSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import type { PolicyTest } from '../../../src/policies/policy-tests.ts'
import { tryProposal } from '../../../src/policies/proposal.ts'
import { compilePolicySync } from '../../../src/policy/evaluation/compile.ts'
import { walk } from '../../../src/policy/evaluation/walk.ts'
import { factsOf } from '../../../src/policy/lint/examined.ts'
import { valuesOfBoth } from '../../../src/policy/propose/field-values.ts'
import { keptOf } from '../../../src/policy/propose/kept.ts'
import { learn } from '../../../src/policy/propose/learn.ts'
import { type CountedShape, readShape } from '../../../src/policy/propose/recorded.ts'
import { shapeOf } from '../../../src/policy/propose/shape.ts'
import { type RecordedRequest, totalOf } from '../../../src/policy/propose/template.ts'
import { type RequestDescription, requestFromDescription } from '../../../src/policy/request/describe.ts'
import { createRandom, pick } from '../../fixtures/random-policy.ts'
import { described, policyOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

type Request = RequestDescription['request']
type Random = () => number

const folder = new URL('../../../policies/cookbook/', import.meta.url)
const agent = { id: '00000000-0000-4000-8000-000000000001' }
const dayMs = 86_400_000

/** Requests that the policy of the cookbook allows, each three times on two days. */
function recordedOf(requests: readonly Request[]): readonly RecordedRequest[] {
  return requests.flatMap(given => {
    const request = described({ request: given, agent })
    const shape = shapeOf(request)
    if ('unfit' in shape) return []
    const one = { agentId: agent.id, request, shape, effect: 'Allow', status: 200, verdict: null, signals: [] } as const
    return [0, 1, 1].map(day => ({ ...one, at: day * dayMs }))
  })
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Each makes a request that nobody sent of one that was sent. */
const mutations: readonly ((random: Random, request: Request) => Request)[] = [
  (random, request) => ({ ...request, method: pick(random, methods) }),
  (random, request) => ({ ...request, url: request.url.replace('https:', pick(random, ['http:', 'https:'])) }),
  (random, request) =>
    withUrl(request, url => (url.hostname = pick(random, [`x${url.hostname}`, `${url.hostname}.x`]))),
  (_, request) => withUrl(request, url => (url.port = '8443')),
  (random, request) => withUrl(request, url => url.searchParams.set(pick(random, ['acl', 'admin', '_method']), 'x')),
  (random, request) => withUrl(request, url => (url.pathname = otherPath(random, url.pathname))),
  (random, request) => withUrl(request, url => (url.pathname = otherPath(random, url.pathname))),
  (random, request) => ({ ...request, body: otherBody(random, request.body) }),
  (random, request) => ({ ...request, body: otherBody(random, request.body) }),
  (random, request) => withHeader(request, pick(random, ['text/plain', 'application/xml', 'multipart/form-data'])),
]

function withUrl(request: Request, change: (url: URL) => unknown): Request {
  const url = new URL(request.url)
  change(url)
  return { ...request, url: url.href }
}

function withHeader(request: Request, type: string): Request {
  return { ...request, headers: { ...request.headers, 'content-type': type } }
}

function otherPath(random: Random, path: string): string {
  const segments = path.split('/')
  const place = 1 + Math.floor(random() * (segments.length - 1))
  const segment = segments[place] ?? ''
  const others = [`${segment}-x`, `x${segment}`, segment.toUpperCase(), `${segment}s`, `${segment}/x`, `x/${segment}`]
  return segments.with(place, pick(random, others)).join('/')
}

/** A further member, another tool or model, a list, or no body; of a form a further pair. */
function otherBody(random: Random, body: unknown): unknown {
  if (typeof body === 'string') return pick(random, [`${body}&admin=true`, `${body}&Amount=9`, ''])
  if (typeof body !== 'object' || body === null) return { data: 'x' }
  const copy = structuredClone(body) as Record<string, Record<string, unknown>>
  const changes: readonly (() => unknown)[] = [
    () => ({ ...copy, admin: true }),
    () => [copy],
    () => ({ ...copy, [Object.keys(copy)[0]!.toUpperCase()]: 'x' }),
    () => ('model' in copy ? { ...copy, model: `${copy['model']}-large` } : { ...copy, model: 'x' }),
    () => ('params' in copy ? { ...copy, params: { ...copy['params'], name: 'drop' } } : { ...copy, params: {} }),
    () => ('method' in copy ? { ...copy, method: 'resources/read' } : { ...copy, method: 'x' }),
  ]
  return pick(random, changes)()
}

/** What rules tell of a request; requests of which no rule is made differ in all. */
const textOf = (request: Request): string | undefined => {
  const made = requestFromDescription({ request, agent }, 0)
  if ('problem' in made) return undefined
  const shape = shapeOf(made)
  return 'unfit' in shape ? JSON.stringify([request.method, request.url, request.body]) : JSON.stringify(shape)
}

/** Whether a request differs from a recorded one by names that it lacks alone: it is no near miss. */
function lacksNames(request: Request, recorded: readonly RecordedRequest[]): boolean {
  const shape = shapeOf(described({ request, agent }))
  if ('unfit' in shape) return false
  const rest = ({ names: _, ...others }: typeof shape) => JSON.stringify(others)
  return recorded.some(one => {
    const known = new Map(one.shape.names)
    const isWithin = shape.names.every(([field, names]) =>
      names.every(name => known.get(field)?.includes(name) === true),
    )
    return rest(one.shape) === rest(shape) && isWithin
  })
}

const rows: string[] = []

/** The same as the gateway counts it: by shape, without values. */
function countedOf(requests: readonly Request[]): readonly RecordedRequest[] {
  const outcome = { effect: 'Allow', policy: 'p', rule: null, status: 2, verdict: null, signal: null } as const
  const shapes = new Map<string, CountedShape>()
  for (const given of requests) {
    const { shape, values, fields } = keptOf(described({ request: given, agent }), true)!
    const before = shapes.get(JSON.stringify(shape))
    const merged = values.map((some, place) => [...new Set([...(before?.values[place] ?? []), ...some])].slice(0, 8))
    const times = { count: 30 + (before?.count ?? 0), firstAt: 0, lastAt: dayMs, days: [0, 1] }
    const known = { values: merged, fields: valuesOfBoth(before?.fields, fields) }
    shapes.set(JSON.stringify(shape), { agentId: agent.id, shape, outcome, ...known, ...times })
  }
  return [...shapes.values()].flatMap(one => {
    const read = readShape(one, false)
    return 'unfit' in read ? [] : read.requests
  })
}

type Recorder = (requests: readonly Request[]) => readonly RecordedRequest[]

function tryAgent(t: Test, name: string, record: Recorder, count: number): void {
  const { tests } = parse(readFileSync(new URL(`${name}.test.yaml`, folder), 'utf8')) as { tests: PolicyTest[] }
  const sent = tests.filter(({ expect }) => expect.decision === 'Allow').map(({ request }) => request)
  const recorded = record(sent)
  const observed = { recorded, eligible: recorded }
  const proposal = learn(name, observed, { isExact: false, promotes: false, unseen: 'Hitl' })
  const report = tryProposal(proposal, observed, {})
  const deletes = totalOf(recorded.filter(({ shape }) => shape.method === 'DELETE'))
  t.equal(report.allowed + deletes, totalOf(recorded), 'all of it but what deletes')
  const times = record === countedOf ? 10 : 1
  t.equal(totalOf(recorded), times * totalOf(recordedOf(sent)), 'nothing is left out')
  const compiled = compilePolicySync(policyOf(proposal.document))
  const known = new Set(sent.map(textOf))
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const passed: unknown[] = []
  let tried = 0
  for (let draw = 0; draw < 20 * count && tried < count; draw++) {
    const request = pick(random, mutations)(random, pick(random, sent))
    const text = textOf(request)
    const made = requestFromDescription({ request, agent }, 0)
    if (text === undefined || 'problem' in made || known.has(text) || lacksNames(request, recorded)) continue
    tried++
    if (walk(compiled, factsOf(made)).effect === 'Allow') passed.push({ seed, request })
  }
  t.strictSame(passed, [], 'no near miss')
  t.equal(tried, count)
  const rules = proposal.document.rules.length
  rows.push(
    `${name}: ${3 * sent.length} requests, ${rules} rules, ${report.allowed} allowed, ${deletes} held, ${passed.length} of ${tried} near misses`,
  )
}

const names = readdirSync(folder)
  .filter(file => !file.endsWith('.test.yaml'))
  .map(file => file.replace('.yaml', ''))

for (const name of names) {
  t.test(`rules from the requests of ${name} allow them, and no request that is nearly one`, async t => {
    tryAgent(t, name, recordedOf, runs(1_000))
  })

  t.test(`so do rules from the counts of ${name}`, async t => {
    tryAgent(t, name, countedOf, runs(1_000))
  })
}

t.teardown(() => t.comment(rows.join('\n')))
