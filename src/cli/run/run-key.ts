/** The key of an agent for one run. It is in the memory of this process alone, and is revoked when the run ends. */
import { hostname, userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { asError } from '../../base/as-error.ts'
import { parseJson } from '../../base/json.ts'
import { isObject } from '../../base/records.ts'
import { StartupError } from '../../base/refusals.ts'
import type { Clock } from '../../runtime/clock.ts'
import { requestAdminToken } from '../admin-token.ts'
import type { Configuration } from '../configuration.ts'
import { callJson, type GatewayAddress, type JsonCall } from '../gateway-address.ts'
import { isRunning } from './run-folder.ts'

export interface RunKeyParts {
  readonly configuration: Configuration
  readonly gateway: GatewayAddress
  /** Name or id of the agent. One that is not there is registered. */
  readonly agent: string
  /** Of this process. */
  readonly pid: number
  readonly clock: Pick<Clock, 'now'>
  /** Called for what goes wrong during the run. */
  readonly complain: (text: string) => void
  /** Interval of the checks whether the key is to be renewed, milliseconds. */
  readonly checkMs?: number
}

export type RunKey = Awaited<ReturnType<typeof openRunKey>>

/** A run that is killed cannot revoke its key, which then ends by itself, milliseconds. Nobody has it any more. */
const validMs = 86_400_000
/** Time after which a run gets a new one, milliseconds. The old one stays for connections that began with it. */
const renewMs = validMs / 2
const minuteMs = 60_000
/** Time that revoking may take, milliseconds. */
const endMs = 5_000

type AgentView = Awaited<ReturnType<typeof register>>

interface KeyView {
  readonly id: string
  readonly name: string
}

/** Calls the management API as the first admin. */
type Manage = (call: Omit<JsonCall, 'token'>) => Promise<unknown>

/** @throws StartupError when the agent cannot have a key */
export async function openRunKey(parts: RunKeyParts) {
  const { agent: wanted, complain } = parts
  const manage = await signIn(parts)
  const found = await findAgent(manage, wanted)
  const agent = found ?? (await register(manage, wanted))
  await revokeLeftOver(manage, agent, parts.pid)
  const ids: string[] = []
  let key = ''
  const renew = async (call: Manage) => {
    const expiresAt = new Date(parts.clock.now() + validMs).toISOString()
    const body = { name: nameOf(parts.pid), expiresAt }
    const answer = await call({ method: 'POST', path: `/agents/${agent.id}/keys`, body })
    // openapi.json describes it.
    const made = answer as KeyView & { readonly key: string }
    ids.push(made.id)
    key = made.key
    // An agent may not have many: those that have ended by themselves need not be kept.
    await revokeAll(call, ids.splice(0, ids.length - 2)).catch(() => {})
  }
  await renew(manage)
  const say = (what: string) => (error: unknown) => complain(`agent-gateway run: ${what}: ${asError(error).message}`)
  // Timers stand still while a machine sleeps, and the gateway may not answer when a renewal is due: it is tried again.
  let renewAt = parts.clock.now() + renewMs
  let hasFailed = false
  const check = async (): Promise<void> => {
    const now = parts.clock.now()
    if (now < renewAt) return
    renewAt = now + renewMs
    try {
      await renew(await signIn(parts))
      hasFailed = false
    } catch (error) {
      renewAt = now
      if (!hasFailed) say('the key was not renewed')(error)
      hasFailed = true
    }
  }
  let checking = Promise.resolve()
  const timer = setInterval(() => {
    checking = checking.then(check)
  }, parts.checkMs ?? minuteMs).unref()
  return {
    current: () => key,
    /** For people: how the agent came by it. */
    note: found === undefined ? `the agent ${wanted} is new, with the policy for new agents` : undefined,
    async end() {
      clearInterval(timer)
      // A key that is being made is to be revoked as well.
      await Promise.race([checking, sleep(endMs, undefined, { ref: false })])
      await revokeAll(await signIn(parts).catch(() => manage), ids).catch(
        say('the key was not revoked, it ends in a day'),
      )
    },
  }
}

async function signIn({ configuration, gateway }: RunKeyParts): Promise<Manage> {
  const token = await requestAdminToken(configuration, gateway)
  return async call => {
    const { status, text } = await callJson(gateway, { ...call, token })
    const answer = text === '' ? {} : parseJson(text)
    if (status < 300 && answer !== undefined) return answer
    const detail = isObject(answer) ? answer['detail'] : undefined
    throw new StartupError(
      `${gateway.name} answered ${status} to ${call.method} ${call.path}. ${detail ?? ''}`.trimEnd(),
    )
  }
}

/** @throws StartupError when several agents have the name */
async function findAgent(manage: Manage, wanted: string): Promise<AgentView | undefined> {
  const found: AgentView[] = []
  for (let page = 1, left = true; left; page++) {
    const path = `/agents?page=${page}&pageSize=${pageSize}`
    // openapi.json describes it.
    const { items } = (await manage({ method: 'GET', path })) as { readonly items: readonly AgentView[] }
    const named = items.find(({ id }) => id === wanted.toLowerCase())
    if (named !== undefined) return named
    found.push(...items.filter(({ name }) => name === wanted))
    left = items.length === pageSize
  }
  if (found.length > 1) {
    throw new StartupError(`Several agents are called ${wanted}. Use the id: ${found.map(({ id }) => id).join(', ')}`)
  }
  const [agent] = found
  if (agent === undefined || agent.status === 'Active') return agent
  throw new StartupError(`The agent ${wanted} is ${agent.status}: it may not call.`)
}

const pageSize = 200

async function register(manage: Manage, name: string) {
  const body = { name, ownerId: userInfo().username }
  // openapi.json describes it.
  const { id } = (await manage({ method: 'POST', path: '/agents', body })) as { readonly id: string }
  return { id, name, status: 'Active' }
}

const nameOf = (pid: number): string => `run on ${hostname()}, process ${pid}`

/** Runs that were killed have left keys, of which an agent may not have many. */
async function revokeLeftOver(manage: Manage, { id }: AgentView, pid: number): Promise<void> {
  const prefix = nameOf(0).slice(0, -1)
  // openapi.json describes it.
  const keys = (await manage({ method: 'GET', path: `/agents/${id}/keys` })) as readonly KeyView[]
  const ofThisMachine = keys.filter(({ name }) => name.startsWith(prefix))
  const gone = ofThisMachine.filter(({ name }) => !isRunning(Number(name.slice(prefix.length))) || name === nameOf(pid))
  await revokeAll(
    manage,
    gone.map(key => key.id),
  )
}

async function revokeAll(manage: Manage, keyIds: readonly string[]): Promise<void> {
  for (const id of keyIds) await manage({ method: 'DELETE', path: `/keys/${id}`, withinMs: endMs })
}
