/**
 * Webhooks: tells others what happens to held requests. Signed, tried again, one after the other for each hook, and
 * never waited for: a hook that is down delays nothing, and the requests it missed are in the list of pending requests.
 */
import { createHmac } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { printableJson } from '../base/deceptive.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import type { EventLog, HitlEvent } from './events.ts'

type Hook = Config['HumanInTheLoop']['Webhooks'][number]

export interface Message {
  readonly url: string
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string
}

/** Posts once, past the egress guard and without following redirects. Resolves with the status; rejects, also at the abort. */
export type Post = (message: Message, signal: AbortSignal) => Promise<number>

export interface NotifierOptions {
  readonly hooks: readonly Hook[]
  readonly events: EventLog
  readonly clock: Clock
  readonly post: Post
  readonly report: (what: string, error: unknown) => void
  /** Origin of System:PublicUrl; without it messages have no link. */
  readonly publicUrl?: string | undefined
  /** Milliseconds before each further try. */
  readonly delays?: readonly number[]
}

export interface Notifier {
  /** Resolves when nothing is left to tell. */
  idle(): Promise<void>
  /** Events that are not delivered yet are dropped. */
  close(): void
}

const backOff = [1_000, 5_000, 30_000, 120_000, 600_000]
/** Events that wait for one hook; the oldest is dropped for one more. */
const maxWaiting = 1_000

export function createNotifier(options: NotifierOptions): Notifier {
  const stop = new AbortController()
  const hooks = options.hooks.map((hook, index) =>
    openHook(hook, `webhook ${index}`, { ...options, stop: stop.signal }),
  )
  const { close } = options.events.subscribe(event => {
    for (const hook of hooks) hook.tell(event)
  })
  return {
    idle: async () => void (await Promise.all(hooks.map(hook => hook.idle()))),
    close() {
      close()
      stop.abort()
    },
  }
}

interface HookOptions extends NotifierOptions {
  readonly stop: AbortSignal
}

function openHook(hook: Hook, name: string, options: HookOptions) {
  const told = new Set<string>(hook.Events.length === 0 ? ['pending'] : hook.Events)
  const waiting: HitlEvent[] = []
  let running: Promise<void> | undefined

  async function drain(): Promise<void> {
    for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
      const failure = await deliver(hook, event, options)
      if (failure !== undefined)
        options.report(`${name} was not told of ${event.type} ${event.hitlId ?? event.data['agentId']}`, failure)
    }
    running = undefined
  }

  return {
    tell(event: HitlEvent): void {
      if (!told.has(event.type)) return
      if (waiting.length >= maxWaiting)
        options.report(`${name} is too slow, ${waiting.shift()?.id} is dropped`, undefined)
      waiting.push(event)
      running ??= drain()
    },
    idle: async () => await running,
  }
}

/** Tries until the hook takes the event, refuses it for good, or the tries are used up. */
async function deliver(hook: Hook, event: HitlEvent, options: HookOptions): Promise<unknown> {
  const { stop, delays = backOff } = options
  let failure: unknown
  for (const delay of [0, ...delays]) {
    // The pause is aborted only when the gateway stops: nothing more is sent.
    if (delay > 0) await setTimeout(delay, undefined, { signal: stop }).catch(() => {})
    if (stop.aborted) return failure ?? 'the gateway stopped'
    try {
      const status = await options.post(message(hook, event, options), stop)
      if (status >= 200 && status < 300) return undefined
      failure = `answered ${status}`
      if (!isPassing(status)) return failure
    } catch (error) {
      failure = error
    }
  }
  return failure
}

/** Whether the same message may be taken later. */
function isPassing(status: number): boolean {
  return status >= 500 || status === 408 || status === 429
}

/**
 * `Gateway-Signature: t=<seconds since the epoch>,v1=<hex>`, where v1 is the HMAC-SHA256 over `<t>.<body>`. The
 * receiver refuses old times, and with them what somebody recorded.
 */
function message(hook: Hook, event: HitlEvent, { clock, publicUrl }: HookOptions): Message {
  const link = publicUrl === undefined ? undefined : publicUrl + pageOf(event)
  const content = hook.Format === 'slack' ? { text: slackText(event, link) } : genericBody(event, link)
  const body = printableJson(JSON.stringify(content))
  const headers = ['Content-Type', 'application/json', 'User-Agent', 'agent-gateway']
  if (hook.Secret !== undefined) {
    const time = Math.floor(clock.now() / 1_000)
    const signature = createHmac('sha256', hook.Secret).update(`${time}.${body}`).digest('hex')
    headers.push('Gateway-Signature', `t=${time},v1=${signature}`)
  }
  // A hook without an address does not start: config/check.ts.
  return { url: hook.Url as string, headers, body }
}

/** The page of the console about an event. */
function pageOf({ hitlId, data }: HitlEvent): string {
  return hitlId === null ? `/console/#/agents/${data['agentId']}` : `/console/#/requests/${hitlId}`
}

function genericBody({ id, type, at, hitlId, data }: HitlEvent, url: string | undefined) {
  return { id, type: `hitl.${type}`, at: new Date(at).toISOString(), hitlId, ...(url && { url }), data }
}

/** In Slack's text format only these three characters need care. */
function slackText({ type, hitlId, data }: HitlEvent, link: string | undefined): string {
  const lines =
    type === 'pending'
      ? pendingLines(data)
      : [hitlId === null ? `Agent ${data['agentId']}: ${type} (${data['cause']})` : `Request ${hitlId}: ${type}`]
  const by = data['by'] === undefined ? [] : [`by ${data['by']}`]
  const text = [...lines, ...by].join('\n')
  const plain = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return link === undefined ? plain : `${plain}\n<${link}|Open in the console>`
}

function pendingLines(data: HitlEvent['data']): string[] {
  const { agentId, agentName } = data
  return [
    `Review needed until ${data['expiresAt']}: ${data['method']} ${data['url']}`,
    `Agent ${agentName ? `${agentName} (${agentId})` : agentId} of ${data['ownerId']}`,
    `${data['reason']}`,
    `GET /hitl/${data['id']}`,
  ]
}
