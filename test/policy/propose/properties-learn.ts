/** A learned policy allows what was recorded alone. Threat T90. */
import t from 'tap'
import { learn } from '../../../src/policy/propose/learn.ts'
import { shapeOf } from '../../../src/policy/propose/shape.ts'
import { type RecordedRequest, whyIneligible } from '../../../src/policy/propose/template.ts'
import {
  type DescribedRequest,
  type RequestDescription,
  requestFromDescription,
} from '../../../src/policy/request/describe.ts'
import { naiveVerdict } from '../../fixtures/naive-policy.ts'
import { createRandom, pick } from '../../fixtures/random-policy.ts'
import { policyOf } from '../../fixtures/rulebook.ts'
import { runs } from '../../fixtures/runs.ts'

type Random = () => number

const classes = {
  int: /^[0-9]{1,19}$/,
  date: /^\d{4}-\d\d-\d\d$/,
  uuid: /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/,
  hex: /^[0-9a-f]{16,}$/,
  key: /^(?=.*\d)[A-Za-z0-9_-]{16,}$/,
}

const ints = ['1', '2', '3', '4', '77']
const uuids = ['a', 'b', 'c', 'd', 'e'].map(digit => `${digit.repeat(8)}-0000-4000-8000-00000000000${digit}`)
const keys = ['A', 'B', 'C', 'D'].map(letter => `cus_${letter}23456789012`)
const words = ['me', 'export', 'import', 'all']

function segmentOf(random: Random): string {
  return pick(random, [...ints, ...ints, ...uuids, ...keys, ...words])
}

function pathOf(random: Random): string {
  const first = pick(random, ['users', 'orders', '7', '8', '9'])
  const rest = Array.from({ length: Math.floor(random() * 3) }, () => segmentOf(random))
  return `/${[first, ...rest].join('/')}`
}

function bodyOf(random: Random): unknown {
  const names = ['amount', 'note', 'Note', 'admin'].filter(() => random() < 0.4)
  const plain = Object.fromEntries(names.map(name => [name, 'x']))
  if (random() < 0.6) return plain
  const args = Object.fromEntries(names.map(name => [name, 1]))
  const params = random() < 0.8 ? { params: { name: pick(random, ['read', 'write']), arguments: args } } : {}
  return { jsonrpc: '2.0', id: 1, method: pick(random, ['tools/call', 'tools/list']), ...params }
}

const agents = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']

const describedOf = (request: RequestDescription['request'], id: string): DescribedRequest =>
  requestFromDescription({ request, agent: { id } }, 0) as DescribedRequest

const queries = ['', '', '', '?page=1', '?page=2&size=5', '?size=5', '?admin']

/** Requests that differ in one segment alone, and in the query. */
function requestsOf(random: Random): readonly DescribedRequest[] {
  const method = pick(random, ['GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE'])
  const body = method === 'GET' || random() < 0.1 ? undefined : bodyOf(random)
  const segments = pathOf(random).split('/')
  const pool = pick(random, [ints, uuids, keys, words])
  const place = random() < 0.8 ? segments.length - 1 : Math.floor(random() * segments.length)
  const origin = pick(random, ['https://a.example', 'https://b.example'])
  const id = pick(random, agents)
  const search = pick(random, queries)
  return Array.from({ length: 5 }, () => {
    const path = segments.with(Math.max(1, place), pick(random, pool)).join('/') + search
    return describedOf({ method, url: origin + path, ...(body === undefined ? {} : { body }) }, id)
  })
}

const partsOf = ({ head, body }: DescribedRequest) => {
  const value = body.bytes.length === 0 ? undefined : JSON.parse(new TextDecoder().decode(body.bytes))
  const isCall = value?.jsonrpc === '2.0' && value.method === 'tools/call'
  return {
    fixed: JSON.stringify([
      head.agent.id,
      head.method,
      head.origin,
      typeof value,
      value?.jsonrpc === '2.0' ? value.method : null,
      isCall ? value.params?.name : null,
    ]),
    segments: head.path.split('/'),
    names: [
      `query ${head.queryString === ''}`,
      ...[...new URLSearchParams(head.queryString).keys()].map(name => `parameter ${name}`),
      ...Object.keys(value ?? {}),
      ...Object.keys(value?.params?.arguments ?? {}).map(name => `argument ${name}`),
    ],
  }
}

/** Whether a request is one that was recorded, but for values of a class and for members that are missing. */
function isLike(request: DescribedRequest, recorded: DescribedRequest): boolean {
  const [one, other] = [partsOf(request), partsOf(recorded)]
  if (one.fixed !== other.fixed || one.segments.length !== other.segments.length) return false
  const hasPath = one.segments.every((segment, place) => {
    const wanted = other.segments[place]!
    const isOfClass = Object.values(classes).some(test => test.test(segment) && test.test(wanted))
    return segment === wanted || (place > 1 && isOfClass)
  })
  return hasPath && one.names.every(name => other.names.includes(name))
}

/** The same request with another segment, method or body. */
function neighboursOf(random: Random, { head, body }: DescribedRequest): readonly DescribedRequest[] {
  const segments = head.path.split('/')
  const other = segments.with(1 + Math.floor(random() * (segments.length - 1)), segmentOf(random)).join('/')
  const text = new TextDecoder().decode(body.bytes)
  const known = text === '' ? undefined : JSON.parse(text)
  const again = (path: string, value: unknown, method = head.method) =>
    describedOf({ method, url: head.origin + path, ...(value === undefined ? {} : { body: value }) }, head.agent.id)
  return [again(other, known), again(head.path, bodyOf(random)), again(other, known, pick(random, ['POST', 'PATCH']))]
}

const dayMs = 86_400_000

t.test('what a learned policy allows was recorded, but for ids of the same class', async t => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = createRandom(seed)
  const wrong: unknown[] = []
  const tally = { allowed: 0, unseen: 0, byClass: 0, held: 0 }
  const count = runs(10_000, 60)
  // Few draws may have none that is allowed by the class of its ids.
  const isSeen = () => Object.values(tally).every(times => times > 0)
  for (let run = 0; (run < count || (run < 20 * count && !isSeen())) && wrong.length === 0; run++) {
    const requests = Array.from({ length: 3 }, () => requestsOf(random)).flat()
    const recorded = requests.flatMap((request): readonly RecordedRequest[] => {
      const shape = shapeOf(request)
      if ('unfit' in shape) return []
      const chance = random()
      const [effect, verdict] =
        chance < 0.93
          ? (['Allow', null] as const)
          : (['Hitl', pick(random, [null, 'approved', 'denied'] as const)] as const)
      const status = random() < 0.1 ? 404 : 200
      const one = { agentId: request.head.agent.id, request, shape, effect, status, verdict, signals: [] }
      return [0, 1, 1].slice(0, random() < 0.8 ? 3 : 1).map(day => ({ ...one, at: day * dayMs }))
    })
    const eligible = recorded.filter(one => whyIneligible(one) === undefined)
    const options = { isExact: random() < 0.2, promotes: random() < 0.5, unseen: 'Hitl' } as const
    const { document } = learn('learned', { recorded, eligible }, options)
    const own = policyOf(document)
    const isAllowed = (request: DescribedRequest) =>
      naiveVerdict({ own, guardrail: undefined, isRisky: false }, request).effect === 'Allow'
    for (const { request, shape } of eligible) {
      const decided = recorded.some(one => one.verdict !== null && one.shape.method === shape.method)
      const { agent, origin, method } = request.head
      const ofHost = eligible.filter(({ agentId, shape }) => agentId === agent.id && shape.origin === origin)
      const isOld = new Set(ofHost.map(({ at }) => at)).size > 1
      if (method === 'GET' && !decided && isAllowed(request) !== isOld) wrong.push({ seed, document, request, isOld })
    }
    for (const { request, verdict } of recorded) {
      if (verdict !== null && isAllowed(request)) wrong.push({ seed, document, request, verdict })
    }
    for (const request of [...requests, ...requests.flatMap(one => neighboursOf(random, one)), ...requestsOf(random)]) {
      const like = eligible.filter(one => isLike(request, one.request))
      if (!isAllowed(request)) tally[like.length === 0 ? 'unseen' : 'held']++
      else if (like.length === 0)
        wrong.push({ seed, document, request: { ...request.head, body: String(request.body.bytes) } })
      else {
        tally.allowed++
        if (!like.some(one => one.request.head.path === request.head.path)) tally.byClass++
      }
    }
  }
  t.strictSame(wrong, [])
  for (const [what, times] of Object.entries(tally)) t.ok(times > 0, `${what}: ${times}`)
})
