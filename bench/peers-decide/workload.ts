import { createRandom, pick } from '../../test/fixtures/random-policy.ts'

/** One policy and one set of requests, in words that every engine here can say: host, method, beginning of the path. */
export interface PlainRule {
  readonly name: string
  readonly priority: number
  readonly effect: 'Allow' | 'Deny'
  readonly host: string
  readonly method: string
  readonly prefix: string
}

export interface PlainRequest {
  readonly host: string
  readonly method: string
  readonly path: string
}

export interface Workload {
  readonly rules: readonly PlainRule[]
  readonly requests: readonly PlainRequest[]
}

const methods = ['GET', 'POST', 'PUT', 'DELETE']
const rulesPerHost = 5
const requests = 64

/** Five rules for each host; nine requests of ten meet a rule, anywhere in the list. */
export function createWorkload(count: number): Workload {
  const random = createRandom(count)
  const rules = Array.from(
    { length: count },
    (_, index): PlainRule => ({
      name: `rule-${index}`,
      priority: count - index,
      effect: index % 3 === 0 ? 'Deny' : 'Allow',
      host: `api${Math.floor(index / rulesPerHost)}.example.com`,
      method: methods[index % methods.length] as string,
      prefix: `/v1/resource${index % rulesPerHost}/`,
    }),
  )
  return { rules, requests: Array.from({ length: requests }, () => requestFor(pick(random, rules), random)) }
}

function requestFor(rule: PlainRule, random: () => number): PlainRequest {
  const { host, method, prefix } = rule
  const path = `${prefix}${Math.floor(random() * 1_000)}`
  return random() < 0.1 ? { host: 'nowhere.example.com', method, path } : { host, method, path }
}

/** One engine with a policy loaded: true is Allow. */
export type Ask = (request: PlainRequest) => boolean | Promise<boolean>
