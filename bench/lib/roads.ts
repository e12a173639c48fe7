import { fileURLToPath } from 'node:url'
import { startHaproxy } from '../peers/haproxy.ts'
import { startNginxProxy } from '../peers/nginx.ts'
import type { GatewaySetup } from './gateway.ts'
import { signingSecret, startGateway } from './gateway.ts'
import type { Request } from './load.ts'
import type { Running } from './processes.ts'
import { start } from './processes.ts'
import { denyRules, policyDocument } from './rules.ts'

/** Where a run takes place. */
export interface Place {
  readonly upstreamPort: number
  /** Cores of the proxy under measurement. */
  readonly cores: string | undefined
  /** Runs the built package of the gateway instead of its sources. */
  readonly built?: boolean
  /** Arguments for node, where the proxy runs on it. */
  readonly nodeOptions?: readonly string[]
}

/** One way from the load to the upstream, started and ready. */
export interface StartedRoad {
  readonly request: Request
  /** What is under measurement; undefined when nothing is between. */
  readonly process: Running | undefined
}

export interface Road {
  readonly name: string
  readonly about: string
  /** Program it needs, beyond npm packages. */
  readonly needs?: readonly string[]
  open(place: Place): Promise<StartedRoad>
}

const host = '127.0.0.1'

/** The request that everyone gets, token and all, so that everyone reads the same bytes. */
export function proxied(port: number, token: string, { upstreamPort }: Place): Request {
  return {
    url: `http://${host}:${port}/proxy/http://${host}:${upstreamPort}/items`,
    method: 'GET',
    headers: { 'Gateway-Authorization': `Bearer ${token}` },
  }
}

/** In place of a token for those who do not look at it: as long as a real one. */
const anyToken = 'x'.repeat(420)

const nodePeer = (name: string, script: string, about: string): Road => ({
  name,
  about,
  async open(place) {
    const file = fileURLToPath(new URL(`../peers/${script}`, import.meta.url))
    const { upstreamPort, cores, nodeOptions = [] } = place
    const child = start({ command: [process.execPath, ...nodeOptions, file, String(upstreamPort)], cores })
    const [, port] = await child.shows(/listening on (\d+)/)
    return { request: proxied(Number(port), anyToken, place), process: child }
  },
})

interface GatewayRoad {
  readonly rules?: number
  readonly bodyRule?: boolean
  readonly setup?: Partial<GatewaySetup>
  /** Body of a POST that is sent instead of a GET. */
  readonly body?: string
}

/** The policies of a gateway under load: the one that decides, first. */
export const benchPolicy = (rules: number, bodyRule = false): object =>
  policyDocument({ name: 'bench', rules: denyRules(rules), upstream: host, bodyRule })

function gateway(name: string, about: string, options: GatewayRoad = {}): Road {
  const { rules = 100, bodyRule = false, setup = {}, body } = options
  return {
    name,
    about,
    async open(place) {
      const policies = [benchPolicy(rules, bodyRule), ...(setup.policies ?? [])]
      const { cores, built = false, nodeOptions = [] } = place
      const { url, token, process } = await startGateway({ ...setup, policies, cores, built, nodeOptions })
      const request = proxied(Number(new URL(url).port), token, place)
      return { request: body === undefined ? request : post(request, body), process }
    },
  }
}

const post = (request: Request, body: string): Request => ({
  ...request,
  method: 'POST',
  headers: { ...request.headers, 'Content-Type': 'application/json' },
  body,
})

function haproxy(rules: number): Road {
  return {
    name: `haproxy-${rules}`,
    about: `HAProxy: token, request count, ${rules} deny rules`,
    needs: ['haproxy', '-v'],
    async open(place) {
      // Its token is one that a gateway issued.
      const issuer = await startGateway({ policies: [benchPolicy(1)], cores: place.cores })
      await issuer.process.stop()
      const setup = { upstreamPort: place.upstreamPort, secret: signingSecret, rules: denyRules(rules) }
      const { port, process } = await startHaproxy(setup, place.cores)
      return { request: proxied(port, issuer.token, place), process }
    },
  }
}

const jsonBody = JSON.stringify({ amount: 5, note: 'x'.repeat(16_384 - 24) })

const manyPolicies = Array.from({ length: 999 }, (_, index) =>
  policyDocument({ name: `other-${index}`, rules: denyRules(10), upstream: host }),
)

/** On any core, as threads need several. */
function threads(count: number): Road {
  const setup = { settings: { System: { Server: { Threads: count } } } }
  const road = gateway(`threads-${count}`, `full road, System:Server:Threads: ${count}, on any core`, { setup })
  return { ...road, open: place => road.open({ ...place, cores: undefined }) }
}

export const roads: readonly Road[] = [
  {
    name: 'direct',
    about: 'no proxy',
    open: async place => {
      const { url, ...request } = proxied(0, anyToken, place)
      return { request: { ...request, url: `http://${host}:${place.upstreamPort}/items` }, process: undefined }
    },
  },
  nodePeer('bare', 'bare.ts', 'node:http and undici alone, no checks'),
  gateway('gateway', 'full road: token, rate limit, circuit, egress, 100 deny rules'),
  gateway('gateway-1000', 'full road, 1,000 deny rules', { rules: 1_000 }),
  gateway('gateway-log', 'full road, 100 deny rules, access log', { setup: { accessLog: true } }),
  haproxy(100),
  haproxy(1_000),
  {
    name: 'nginx',
    about: 'nginx as a plain proxy, no checks',
    needs: ['nginx', '-v'],
    async open(place) {
      const { port, process } = await startNginxProxy(place.upstreamPort, place.cores)
      return { request: proxied(port, anyToken, place), process }
    },
  },
  nodePeer('http-proxy', 'http-proxy.ts', 'http-proxy, no checks'),
  nodePeer('fastify', 'fastify.ts', '@fastify/http-proxy, no checks'),
  gateway('post', 'full road, POST of 16 KiB', { body: jsonBody }),
  gateway('post-body-rule', 'the same, a rule reads the JSON body', { body: jsonBody, bodyRule: true }),
  gateway('gateway-many', 'full road with 10,000 agents and 1,000 policies loaded', {
    setup: { otherAgents: 9_999, policies: manyPolicies },
  }),
  threads(1),
  threads(2),
]
