import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { startPostgres } from '../../test/fixtures/postgres.ts'
import { startHaproxy } from '../peers/haproxy.ts'
import { startNginxProxy } from '../peers/nginx.ts'
import { forwardRoads } from './forward-gets.ts'
import { type GatewaySetup, signingSecret, startGateway, type Tree } from './gateway.ts'
import type { Request } from './load.ts'
import { chooseCores } from './machine.ts'
import { pin, type Running, start } from './processes.ts'
import { benchPolicy, denyRules, host, policyDocument } from './rules.ts'
import { longestStall, type Stall } from './stall.ts'
import { startNodeUpstream, startTlsUpstream, startUpstream, type Upstream } from './upstream.ts'
import { modelWorks, requestOf, smallGet, type Work, type WorkRequest, works } from './works.ts'

/** Where a run takes place. */
export interface Place {
  readonly upstream: Pick<Upstream, 'port' | 'url' | 'certificate'>
  /** Cores of the proxy under measurement. */
  readonly cores: string | undefined
  /** Folder of the gateway's sources; this project when absent. */
  readonly root?: string
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
  /** The longest stall of the gateway since a time, milliseconds since the epoch. Only with `stallProbe`. */
  readonly longestStall?: (since: number) => Stall | undefined
}

export interface Road {
  readonly name: string
  readonly about: string
  /** Program it needs, beyond npm packages. */
  readonly needs?: readonly string[]
  /** What it is sent, when that is not the small GET. */
  readonly work?: Work
  open(place: Place): Promise<StartedRoad>
}

/** The request that everyone gets. */
export const proxied = (port: number, token: string, { upstream }: Place, work: WorkRequest = smallGet): Request =>
  requestOf(work, { proxy: `http://${host}:${port}`, upstream: upstream.url, token })

/** In place of a token for those who do not look at it: as long as a real one. */
const anyToken = 'x'.repeat(420)

/** A peer that is a script of this project. */
const nodePeer = (name: string, script: string, about: string, work?: Work): Road => ({
  name,
  about,
  ...(work === undefined ? {} : { work }),
  async open(place) {
    const file = fileURLToPath(new URL(`../peers/${script}`, import.meta.url))
    const { upstream, cores, nodeOptions = [] } = place
    const certificate = upstream.certificate === undefined ? [] : [upstream.certificate]
    const child = start({ command: [process.execPath, ...nodeOptions, file, upstream.url, ...certificate], cores })
    const [, port] = await child.shows(/listening on (\d+)/)
    return { request: proxied(Number(port), anyToken, place, work), process: child }
  },
})

interface GatewayRoad {
  readonly rules?: number
  readonly bodyRule?: boolean
  /** In the place of the policy of those rules. */
  readonly policy?: object
  readonly setup?: Partial<GatewaySetup>
  /** Settings that name the upstream. */
  readonly settingsFor?: (upstream: Place['upstream']) => Tree
  readonly work?: Work
}

function gateway(name: string, about: string, options: GatewayRoad = {}): Road {
  const { rules = 100, bodyRule = false, policy = benchPolicy(rules, bodyRule), setup = {}, work } = options
  const { settingsFor = () => ({}) } = options
  return {
    name,
    about,
    ...(work === undefined ? {} : { work }),
    async open(place) {
      const policies = [policy, ...(setup.policies ?? [])]
      const { upstream, cores, built = false, nodeOptions = [], root } = place
      const trusted = upstream.certificate === undefined ? {} : { Proxy: { CaFile: upstream.certificate } }
      const settings = { ...trusted, ...setup.settings, ...settingsFor(upstream) }
      const started = await startGateway({
        ...{ ...setup, settings, policies, cores, built, nodeOptions },
        ...(root === undefined ? {} : { root }),
      })
      const port = Number(new URL(started.url).port)
      const { process, token, folder } = started
      const stalls = (since: number) => longestStall(folder, since)
      return { request: proxied(port, token, place, work), process, longestStall: stalls }
    },
  }
}

function traced(name: string, about: string, tracing: Tree, work?: Work): Road {
  const settings = { Telemetry: { Tracing: { Url: 'http://127.0.0.1:1/v1/traces', ...tracing } } }
  return gateway(name, about, { setup: { settings }, ...(work === undefined ? {} : { work }) })
}

/** A caller whose own trace is recorded. Its flag counts ten times a second (`ParentPerSecond`), all others by the ratio. */
const withParent: Work = {
  ...smallGet,
  ...{ name: 'parent', about: 'GET with a traceparent that is sampled', perSlice: 1_000, goal: 0 },
  headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
}

const withoutFields: Tree = { System: { RateLimit: { Fields: 'Refused' } } }

/** Somebody reads the metrics once a second while it serves, in OpenMetrics with exemplars. */
const scraped: Road = {
  name: 'gateway-scraped',
  about: 'full road, metrics read once a second',
  async open(place) {
    const Telemetry = { Metrics: { Public: true } }
    const road = await gateway(this.name, this.about, { setup: { settings: { Telemetry } } }).open(place)
    const headers = { Accept: 'application/openmetrics-text; version=1.0.0' }
    const read = () => fetch(new URL('/metrics', road.request.url), { headers }).then(answer => answer.text())
    setInterval(() => void read().catch(() => {}), 1_000).unref()
    return road
  },
}

function haproxy(name: string, about: string, rules: number, work?: Work): Road {
  return {
    name,
    about,
    needs: ['haproxy', '-v'],
    ...(work === undefined ? {} : { work }),
    async open(place) {
      // Its token is one that a gateway issued.
      const issuer = await startGateway({ policies: [benchPolicy(1)], cores: place.cores })
      await issuer.process.stop()
      const setup = { upstream: place.upstream, secret: signingSecret, rules: denyRules(rules) }
      const { port, process } = await startHaproxy(setup, place.cores)
      return { request: proxied(port, issuer.token, place, work), process }
    },
  }
}

const haproxyRules = (rules: number): Road =>
  haproxy(`haproxy-${rules}`, `HAProxy: token, request count, ${rules} deny rules`, rules)

/** Nothing that a body says can lift the risk above this. */
const unread: GatewayRoad['setup'] & {} = { settings: { HumanInTheLoop: { Threshold: 1 } } }

/** A work through the gateway, HAProxy doing the same, and http-proxy, which checks nothing. */
function roadsOf(work: Work): readonly Road[] {
  const { name, about, unreadGoal } = work
  return [
    gateway(name, about, { work }),
    ...(unreadGoal === undefined
      ? []
      : [
          gateway(`${name}-unread`, 'the same, nothing reads it', { work, setup: unread }),
          nodePeer(`${name}-bare`, 'bare.ts', `${about}, node:http and undici alone: the floor`, work),
        ]),
    haproxy(`${name}-haproxy`, `${about}, HAProxy`, 100, work),
    nodePeer(`${name}-http-proxy`, 'http-proxy.ts', `${about}, http-proxy`, work),
  ]
}

/** JSON that is nearly all one string. */
const oneText: Work = {
  ...{ name: 'post', about: 'POST of 16 KiB', method: 'POST', path: '/items', perSlice: 400, goal: 0 },
  body: JSON.stringify({ amount: 5, note: 'x'.repeat(16_384 - 24) }),
}

const manyPolicies = Array.from({ length: 999 }, (_, index) =>
  policyDocument({ name: `other-${index}`, rules: denyRules(10), upstream: host }),
)

/** Held until the end of the run: nobody decides, and there is room for all. */
const held = gateway('held', 'POST of 2 KiB that is held for review', {
  policy: { name: 'bench', default: 'Hitl' },
  setup: { settings: { HumanInTheLoop: { MaxPendingRequests: 1_000_000, MaxPendingPercentPerAgent: 100 } } },
  work: {
    ...{ name: 'held', about: 'POST of 2 KiB', method: 'POST', path: '/items', perSlice: 200, goal: 0 },
    body: JSON.stringify({ amount: 5, note: 'x'.repeat(2_048 - 24) }),
  },
})

/** Prices of any model, and one budget of money that is never used up. */
const moneyBudget: GatewayRoad['settingsFor'] = ({ port }) => ({
  Metering: { Hosts: [`${host}:${port}`] },
  Prices: [{ Model: '*', Input: 1, Output: 1 }],
  Budgets: [{ Name: 'money', Limit: 9_000_000, Per: 'Month' }],
})

const callBudget: Tree = { Budgets: [{ Name: 'calls', Unit: 'Calls', Limit: 1e12, Per: 'Month' }] }

const otherModel = { field: 'llm.model', operator: 'eq', value: 'another' }
/** A rule that must know the model of each call. */
const modelRule = {
  ...{ name: 'bench', default: 'Allow' },
  rules: [{ name: 'model', effect: 'Deny', conditions: [otherModel] }],
}

const budgetRoads: readonly Road[] = [
  gateway('gateway-calls', 'full road, 100 deny rules, a budget of calls', { setup: { settings: callBudget } }),
  ...modelWorks.flatMap(work => [
    gateway(work.name, work.about, { work, setup: unread }),
    gateway(`${work.name}-model`, `${work.about}, a rule on llm.model`, { work, setup: unread, policy: modelRule }),
    gateway(`${work.name}-budget`, `${work.about}, a budget of money`, {
      work,
      setup: unread,
      settingsFor: moneyBudget,
    }),
  ]),
]

/** What the gateway adds for the upstream, in a field of its own. */
const adding =
  (entry: Tree, more: Tree = {}): NonNullable<GatewayRoad['settingsFor']> =>
  ({ port }) => ({ Upstreams: [{ Host: `${host}:${port}`, AllowHttp: true, Header: 'X-Api-Key', ...entry }], ...more })

const keys = JSON.stringify({ AccessKeyId: 'AKIDEXAMPLE', SecretAccessKey: 'a key for measurements only' })
const Secrets = [
  { Name: 'token', FromCommand: ['/bin/echo', 'x'.repeat(420)] },
  { Name: 'keys', FromCommand: ['/bin/echo', keys] },
]
const named = (setting: Tree) => adding({ Credential: 'one' }, { Secrets, Credentials: [{ Name: 'one', ...setting }] })

const credentialRoads: readonly Road[] = [
  // Any text of one line.
  gateway('gateway-value', 'full road, adds a fixed value', { settingsFor: adding({ ValueFromEnv: 'PATH' }) }),
  gateway('gateway-token', 'full road, adds a token that may be renewed', { settingsFor: named({ Secret: 'token' }) }),
  gateway('gateway-aws', 'full road, signs for S3', {
    settingsFor: named({ Type: 'Aws', Secret: 'keys', Services: ['s3'], Regions: ['eu-central-1'] }),
  }),
]

/** The database is on the cores of the others: an allowed request must not need it. */
const onPostgres: Road = {
  name: 'postgres',
  about: 'full road, 100 deny rules, on PostgreSQL',
  async open(place) {
    const server = await startPostgres()
    await pin(server.pid, (await chooseCores()).others)
    const admin = { agentId: randomUUID(), clientSecret: 'a secret for measurements only' }
    const settings = {
      Storage: { Provider: 'PostgreSQL', PostgreSQL: { ConnectionString: server.url, Tls: 'Off' } },
      Security: { Bootstrap: { AgentId: admin.agentId, ClientSecret: admin.clientSecret } },
    }
    return gateway(this.name, this.about, { setup: { settings, admin } }).open(place)
  },
}

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
      return { request: { ...request, url: place.upstream.url + smallGet.path }, process: undefined }
    },
  },
  nodePeer('floor', 'floor.ts', 'node:http answering from memory: what the server alone costs'),
  nodePeer('bare', 'bare.ts', 'node:http and undici alone, no checks'),
  gateway('gateway', 'full road: token, rate limit, circuit, egress, 100 deny rules'),
  gateway('gateway-1000', 'full road, 1,000 deny rules', { rules: 1_000 }),
  onPostgres,
  held,
  gateway('gateway-log', 'full road, 100 deny rules, access log', { setup: { accessLog: true } }),
  gateway('gateway-unrecorded', 'full road, 100 deny rules, no shapes recorded', {
    setup: { settings: { Recording: { Mode: 'off' } } },
  }),
  traced('gateway-unsampled', 'full road, tracing on, no request recorded', { Ratio: 0 }),
  traced('gateway-traced-1', 'full road, one request in a hundred recorded', { Ratio: 0.01 }),
  traced('gateway-traced', 'full road, every request recorded, no collector', { Ratio: 1 }),
  traced('gateway-always', 'full road, every request announced, none recorded', { Ratio: 0, Propagate: 'Always' }),
  gateway('gateway-parent', 'full road, each request has a traceparent', { work: withParent }),
  traced('gateway-parent-traced', 'the same, tracing on', { Ratio: 0 }, withParent),
  scraped,
  gateway('gateway-no-fields', 'full road, RateLimit fields on refusals alone', { setup: { settings: withoutFields } }),
  haproxyRules(100),
  haproxyRules(1_000),
  {
    name: 'nginx',
    about: 'nginx as a plain proxy, no checks',
    needs: ['nginx', '-v'],
    async open(place) {
      const { port, process } = await startNginxProxy(place.upstream.port, place.cores)
      return { request: proxied(port, anyToken, place), process }
    },
  },
  nodePeer('http-proxy', 'http-proxy.ts', 'http-proxy, no checks'),
  nodePeer('fastify', 'fastify.ts', '@fastify/http-proxy, no checks'),
  gateway('gateway-many', 'full road with 10,000 agents and 1,000 policies loaded', {
    setup: { otherAgents: 9_999, policies: manyPolicies },
  }),
  threads(1),
  threads(2),
  gateway('post', 'POST of 16 KiB, one long text', { work: oneText }),
  gateway('post-body-rule', 'the same, a rule reads the JSON body', { work: oneText, bodyRule: true }),
  ...works.flatMap(roadsOf),
  ...budgetRoads,
  ...credentialRoads,
  ...forwardRoads,
]

/** @throws when no road has that name */
export function roadCalled(name: string): Road {
  const road = roads.find(other => other.name === name)
  if (road === undefined) throw new Error(`no road is called ${name}`)
  return road
}

/** The upstream that a road needs: one that does the work, or the cheapest there is. */
export function startUpstreamOf({ work }: Road, cores: string | undefined): Promise<Upstream> {
  if (work === undefined) return startUpstream(cores)
  return work.tls === true ? startTlsUpstream(cores) : startNodeUpstream(cores)
}
