import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Running, start, temporaryFolder } from './processes.ts'

export interface GatewaySetup {
  /** Folder of the sources; this project when absent. */
  readonly root?: string
  /** Runs the built package (npm run build) instead of the sources. */
  readonly built?: boolean
  /** Policies; the agent gets the first. */
  readonly policies: readonly object[]
  /** Writes one line a request, into a file. */
  readonly accessLog?: boolean
  /** Agents registered beside the one that is used. */
  readonly otherAgents?: number
  readonly cores: string | undefined
  /** Settings that are not those of a measurement, by section: `{ System: { Server: ... } }`. */
  readonly settings?: Tree
  /** Arguments for node. */
  readonly nodeOptions?: readonly string[]
  /** The first admin, when the settings name it. */
  readonly admin?: Credential
}

/** A gateway in a process of its own, with a registered agent. */
export interface StartedGateway {
  readonly url: string
  /** Of its forward proxy, if it has one. */
  readonly forwardPort: number
  /** Token of the agent, got over the API. */
  readonly token: string
  readonly process: Running
  /** Its working directory, with `gateway.yaml`, `data` and `log`. */
  readonly folder: string
  /** Token of the first admin. */
  readonly admin: string
}

export interface Tree {
  readonly [key: string]: unknown
}

/** Key that the gateways of this run sign with, and HAProxy verifies with. */
export const signingSecret = randomBytes(36).toString('base64url')

const project = fileURLToPath(new URL('../../', import.meta.url))

/** What node is given by `npm start` and deploy/agent-gateway.service. */
const shippedOptions = ['--max-semi-space-size=4']
/** What that unit and the image tell the allocator of glibc. */
const shippedVariables =
  readFileSync(join(project, 'deploy/agent-gateway.service'), 'utf8').match(/MALLOC_\w+=\d+/g) ?? []

/** The full road: token, rate limit and circuit are on, set so high that they never refuse. */
function defaults(accessLog: boolean): Tree {
  return {
    System: {
      // As the peers: a connection may stand idle while all others have their turn, however slow the machine.
      Server: { Http: { Port: 0 }, DrainSeconds: 2, KeepAliveSeconds: 600 },
      RateLimit: { RequestsPerMinute: 10_000_000, Burst: 10_000_000, MaxInFlight: 1_000_000 },
      ManagementRateLimit: { RequestsPerMinute: 10_000_000, Burst: 10_000_000 },
    },
    Security: {
      AgentAuth: {
        TokenIssuance: { Secret: signingSecret, Expiration: '1.00:00:00' },
        TokenRequests: { BcryptCost: 4 },
      },
    },
    // 64 bodies of 1 MiB, all of one agent, which may hold a quarter.
    Proxy: { MaxHeldBytes: 2 ** 29 },
    Logging: { Access: accessLog },
  }
}

export async function startGateway(setup: GatewaySetup): Promise<StartedGateway> {
  const main = join(setup.root ?? project, setup.built === true ? 'dist/main.js' : 'src/main.ts')
  if (!existsSync(main)) throw new Error(`${main} is missing: npm run build makes it`)
  const { policies, accessLog = false, cores, nodeOptions = [], otherAgents = 0 } = setup
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'policies'))
  policies.forEach((policy, index) => {
    writeFileSync(join(folder, 'policies', `${index}.yaml`), JSON.stringify(policy))
  })
  writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(merge(defaults(accessLog), setup.settings ?? {})))
  const node = ['env', ...shippedVariables, process.execPath, ...shippedOptions, ...nodeOptions]
  const command = [...node, main, 'serve', '--config', 'gateway.yaml']
  const child = start({ command, cores, cwd: folder, outputFile: join(folder, 'log') })
  const [, url = ''] = await child.shows(/Address +(\S+)/)
  const [, forwardPort] = setup.settings?.['ForwardProxy'] ? await child.shows(/Forward proxy +\S+:(\d+)/) : []
  const admin = await tokenOf(url, setup.admin ?? generatedIn(folder))
  const policyName = (policies[0] as { name: string }).name
  const credential = await register(url, admin, policyName)
  for (let left = otherAgents; left > 0; left -= 8) {
    await Promise.all(Array.from({ length: Math.min(8, left) }, () => register(url, admin, policyName)))
  }
  const token = await tokenOf(url, credential)
  return { url, forwardPort: Number(forwardPort), token, process: child, folder, admin }
}

function generatedIn(folder: string): Credential {
  return JSON.parse(readFileSync(join(folder, 'data', 'bootstrap.json'), 'utf8'))
}

function merge(base: Tree, over: Tree): Tree {
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const before = base[key]
    merged[key] = isTree(value) && isTree(before) ? merge(before, value) : value
  }
  return merged
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

export interface Credential {
  readonly agentId: string
  readonly clientSecret: string
}

async function register(url: string, admin: string, policyName: string): Promise<Credential> {
  const clientSecret = 'a secret for measurements only'
  const agent = { name: 'bench', ownerId: 'bench', clientSecret, policyName }
  const { id } = await post<{ id: string }>(`${url}/agents`, agent, { Authorization: `Bearer ${admin}` })
  return { agentId: id, clientSecret }
}

async function tokenOf(url: string, { agentId, clientSecret }: Credential): Promise<string> {
  const { accessToken } = await post<{ accessToken: string }>(`${url}/tokens`, { agentId, clientSecret })
  return accessToken
}

async function post<T>(url: string, body: object, headers: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`POST ${url}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}
