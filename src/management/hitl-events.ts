import { Readable } from 'node:stream'
import { printableJson } from '../base/deceptive.ts'
import type { HitlEvent } from '../hitl/events.ts'
import type { Handlers, ManagementCall } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Interval of comments, milliseconds: without them a proxy in between may close an idle stream. */
const heartbeatMs = 15_000
/** How often it is checked whether the stream may go on while nothing happens, milliseconds. */
const checkMs = 1_000
/** A reader that falls this far behind is disconnected, bytes. It reconnects with the id of its last event. */
const maxBuffered = 1_048_576
/** When a reader should come back, milliseconds. */
const retryMs = 2_000

/** The events of held requests and of quarantines, as server-sent events (WHATWG HTML, section 9.2). */
export function eventHandlers({ hitl }: ManagementParts): Handlers['guarded'] {
  return {
    streamHitlEvents: call => ({
      status: 200,
      // The second field is for nginx, which would hold events back to fill its buffers.
      headers: ['Content-Type', 'text/event-stream; charset=utf-8', 'X-Accel-Buffering', 'no'],
      body: openStream(hitl, call),
    }),
  }
}

function openStream({ events, stopping }: ManagementParts['hitl'], call: ManagementCall): Readable {
  const stream = new Readable({ read() {} })
  let max = Number.POSITIVE_INFINITY
  let over = false

  const end = () => {
    if (!over) stream.push(null)
    over = true
  }
  /** Nothing more may be sent: bytes that a slow reader has not read are dropped. */
  const cut = () => (stream.readableLength === 0 ? end() : stream.destroy())
  const say = (block: string) => {
    if (over) return
    if (call.problemNow() !== undefined) return cut()
    stream.push(`${block}\n\n`)
    if (stream.readableLength > max) stream.destroy()
  }

  say(`retry: ${retryMs}`)
  const lastId = call.req.headers['last-event-id']
  const { missed, newest, close } = events.subscribe(
    event => say(blockOf(event)),
    typeof lastId === 'string' ? lastId : undefined,
    end,
  )
  if (missed) say(`id: ${newest}\nevent: reset\ndata: {}`)
  else if (lastId === undefined) say(`id: ${newest}`)
  // Missed events are sent at once: they do not make it a slow reader.
  max = stream.readableLength + maxBuffered
  const heart = setInterval(say, heartbeatMs, ': still here')
  // Without its rights, or behind a fence: another gateway may serve the reader.
  const check = setInterval(() => call.problemNow() !== undefined && cut(), checkMs)
  stopping.addEventListener('abort', end)
  call.left.addEventListener('abort', cut)
  if (stopping.aborted) end()
  return stream.once('close', () => {
    over = true
    clearInterval(heart)
    clearInterval(check)
    stopping.removeEventListener('abort', end)
    close()
  })
}

function blockOf({ id, type, at, hitlId, data }: HitlEvent): string {
  const payload = { type, at: new Date(at).toISOString(), hitlId, data }
  return `id: ${id}\nevent: ${type}\ndata: ${printableJson(JSON.stringify(payload))}`
}
