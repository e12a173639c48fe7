/**
 * The gateway's events, as they happen. `EventSource` sends no token, so the stream is read by hand (WHATWG HTML, section
 * 9.2). After a break it goes on from the last event, or says that everything must be read again.
 */
import { effect, signal } from '@preact/signals'
import { send } from './api.ts'
import { session } from './session.ts'

export interface LiveEvent {
  readonly type: string
  readonly at: string
  readonly hitlId: string | null
  readonly data: Readonly<Record<string, unknown>>
}

/** `silent`: nothing came for too long, so what is shown may be old. */
export type Liveness = 'off' | 'connecting' | 'live' | 'silent'

export const liveness = signal<Liveness>('off')

/** The gateway says something every 15 s. */
const silentMs = 30_000
const firstRetryMs = 500
const longestRetryMs = 15_000

type Listener = (event: LiveEvent) => void
const listeners = new Set<Listener>()

/** Calls the listener for each event, and with the type `reset` when some were missed. Returns what ends that. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let lastId: string | undefined
/** Steady milliseconds of the last sign of life. */
let heardAt = performance.now()

/** How long the gateway has said nothing, milliseconds. */
export const silentForMs = (): number => performance.now() - heardAt
let stop: AbortController | undefined

effect(() => {
  const isActive = session.value.kind === 'active'
  if (isActive && stop === undefined) {
    heardAt = performance.now()
    stop = new AbortController()
    void follow(stop.signal)
  } else if (!isActive) {
    stop?.abort()
    stop = undefined
    liveness.value = 'off'
  }
})

setInterval(() => {
  if (liveness.peek() !== 'off' && performance.now() - heardAt > silentMs) liveness.value = 'silent'
}, 1_000)

addEventListener('online', () => wake())
addEventListener('offline', () => {
  if (liveness.peek() !== 'off') liveness.value = 'silent'
  breakOff()
})
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') wake()
})

/** Ends the pause before the next attempt. */
let wake = (): void => {}
/** Ends the stream that is read. */
let breakOff = (): void => {}

async function follow(signal: AbortSignal): Promise<void> {
  let retryMs = firstRetryMs
  while (!signal.aborted) {
    if (liveness.peek() !== 'silent') liveness.value = 'connecting'
    const isConnected = await listen(signal)
    if (signal.aborted) return
    tellFirst()
    retryMs = isConnected ? firstRetryMs : Math.min(longestRetryMs, retryMs * 2)
    await pause(retryMs * (0.75 + Math.random() / 2))
  }
}

function pause(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  wake = resolve
  setTimeout(resolve, ms)
  return promise
}

let isFirst = true

/** Events before the first stream are in the lists that are read now; and without a stream they are read all the same. */
function tellFirst(): void {
  if (isFirst) publish({ type: 'reset', at: '', hitlId: null, data: {} })
  isFirst = false
}

/** Reads one stream to its end. Whether it was one. */
async function listen(stopped: AbortSignal): Promise<boolean> {
  const silence = new AbortController()
  const signal = AbortSignal.any([stopped, silence.signal])
  const since = performance.now()
  breakOff = () => silence.abort()
  const watch = setInterval(() => {
    if (performance.now() - Math.max(since, heardAt) > silentMs) silence.abort()
  }, 1_000)
  try {
    const answer = await send('GET', '/hitl/events', {
      signal,
      ...(lastId === undefined ? {} : { lastEventId: lastId }),
    })
    if (answer?.ok !== true || answer.body === null) return false
    heardAt = performance.now()
    liveness.value = 'live'
    tellFirst()
    await read(answer.body)
    return true
  } catch {
    return true
  } finally {
    clearInterval(watch)
    if (!stopped.aborted && liveness.peek() === 'live') liveness.value = 'connecting'
  }
}

async function read(body: ReadableStream<Uint8Array>): Promise<void> {
  // The types of streams of bytes differ in what their buffer may be.
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    heardAt = performance.now()
    if (liveness.peek() === 'silent') liveness.value = 'live'
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) take(block)
  }
}

function take(block: string): void {
  let type = ''
  let data = ''
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) lastId = line.slice(4)
    else if (line.startsWith('event: ')) type = line.slice(7)
    else if (line.startsWith('data: ')) data += line.slice(6)
  }
  if (type === 'reset') publish({ type, at: '', hitlId: null, data: {} })
  else if (type !== '') publish(JSON.parse(data))
}

function publish(event: LiveEvent): void {
  for (const listener of listeners) listener(event)
}
