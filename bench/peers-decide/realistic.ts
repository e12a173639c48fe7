import type { RequestDescription } from '../../src/policy/request/describe.ts'

/** A policy as people write it: six services with reads, writes and a rule on the body each, and some that hold for all. */
const hosts = ['shop', 'mail', 'crm', 'git', 'files', 'pay'].map(name => `${name}.api.example.com`)

const rulesOfHost = (host: string, index: number) => [
  rule(`${host} deletes`, 90, 'Hitl', [of('input.host', 'eq', host), of('input.method', 'eq', 'DELETE')]),
  rule(`${host} large`, 80, 'Hitl', [
    of('input.host', 'eq', host),
    of('input.method', 'eq', 'POST'),
    of('input.path', 'pathMatches', `/v${index}/orders/**`),
    of('input.body.amount', 'gt', '1000'),
  ]),
  rule(`${host} admin`, 70, 'Deny', [of('input.host', 'eq', host), of('input.path', 'startsWith', '/admin/')]),
  rule(`${host} writes`, 20, 'Allow', [
    of('input.host', 'eq', host),
    of('input.method', 'in', 'POST,PUT'),
    of('input.path', 'pathMatches', `/v${index}/orders/**,/v${index}/notes/*`),
  ]),
  rule(`${host} reads`, 10, 'Allow', [of('input.host', 'eq', host), of('input.method', 'in', 'GET,HEAD')]),
]

function of(field: string, operator: string, value: string) {
  return { field, operator, value }
}

function rule(name: string, priority: number, effect: string, conditions: readonly object[]) {
  return { name, priority, effect, conditions }
}

export const realisticPolicy = {
  name: 'realistic',
  default: 'Deny',
  rules: [
    rule('low-trust', 100, 'Hitl', [of('agent.trustScore', 'lt', '0.3')]),
    rule('frozen', 100, 'Deny', [of('input.headers.x-frozen', 'exists', 'true')]),
    ...hosts.flatMap(rulesOfHost),
  ],
}

const headers = {
  host: 'gateway',
  'user-agent': 'agent/1.0',
  accept: 'application/json',
  'accept-encoding': 'gzip',
  'content-type': 'application/json',
  'x-request-id': '7c9e6679-7425-40de-944b-e07fc1f90ae7',
}

export const realisticRequests: readonly RequestDescription[] = hosts.flatMap((host, index) => [
  { request: { method: 'GET', url: `https://${host}/v${index}/orders/17`, headers } },
  { request: { method: 'GET', url: `https://${host}/v${index}/orders?state=open&page=2`, headers } },
  { request: { method: 'POST', url: `https://${host}/v${index}/notes/9`, headers, body: { text: 'hello' } } },
  { request: { method: 'DELETE', url: `https://${host}/v${index}/orders/3`, headers } },
])
