/**
 * The gateway's answer to the JSON-RPC requests of an MCP client. Its SDKs show their callers JSON-RPC errors only, and
 * wait for an answer in the body: after a 202 they would wait forever.
 */
import type { ServerResponse } from 'node:http'
import { printableJson } from '../../base/deceptive.ts'
import { parseJson } from '../../base/json.ts'
import { type Refusal, refuse } from '../../base/refusals.ts'
import type { StoredAnswer } from '../../hitl/model.ts'
import { fieldValues } from '../../http/headers.ts'
import { jsonReply, ownHeaders, sendReply } from '../../http/respond.ts'
import { isMessage, progressMessage, type RpcCall, rpcError } from './json-rpc.ts'

/** Interval of messages to a waiting client, milliseconds: shorter than the time limits of proxies in between. */
const heartbeatMs = 10_000

export class RpcAnswer {
  readonly call: RpcCall
  readonly #res: ServerResponse
  readonly #requestId: string
  #heart: NodeJS.Timeout | undefined = undefined
  #steps = 0

  constructor(call: RpcCall, res: ServerResponse, requestId: string) {
    this.call = call
    this.#res = res
    this.#requestId = requestId
  }

  /** Whether the answer has begun as a stream of events. */
  get isStream(): boolean {
    return this.#heart !== undefined
  }

  /** Begins the answer: a stream of events. The first one says that the request waits for review. */
  wait(hitlId: string): void {
    // The last field is for nginx, which would hold events back to fill its buffers.
    const fields = ['Content-Type', 'text/event-stream', 'Gateway-Hitl-Id', hitlId, 'X-Accel-Buffering', 'no']
    this.#res.writeHead(200, ownHeaders(fields, this.#requestId))
    this.#res.once('close', () => clearInterval(this.#heart))
    this.#heart = setInterval(() => this.#beat(hitlId), heartbeatMs)
    this.#beat(hitlId)
  }

  #beat(hitlId: string): void {
    const { progressToken } = this.call
    const text = `Waiting for review ${hitlId}`
    if (progressToken === undefined) this.#res.write(`: ${text}\n\n`)
    else this.#res.write(event(JSON.stringify(progressMessage(progressToken, ++this.#steps, text))))
  }

  /** Answers each request with the refusal as a JSON-RPC error. */
  refuse(refusal: Refusal): void {
    const errors = this.call.ids.map(id => rpcError(id, refusal, this.#requestId))
    if (this.isStream) this.#end(errors.map(error => event(printableJson(JSON.stringify(error)))).join(''))
    else {
      const fields = ['Gateway-Error', refusal.refusal]
      // Errors of the protocol have the status that the protocol says.
      const status = refusal.refusal === 'mcp_mismatch' ? refusal.status : 200
      void sendReply(this.#res, jsonReply(status, this.call.isBatch ? errors : errors[0], fields), this.#requestId)
    }
  }

  /**
   * Passes the upstream's answer on as events. Its status and fields are lost, since the stream began before they arrived.
   */
  deliver(answer: StoredAnswer, hitlId: string): Refusal | undefined {
    const events = eventsOf(answer)
    if (events === undefined) {
      const detail = `The request was approved. The upstream answered ${answer.status}, and not in JSON-RPC.`
      return refuse('answer_not_kept', detail, { members: { hitlId, upstreamStatus: answer.status } })
    }
    this.#end(events)
    return undefined
  }

  /** Ends the stream without an answer, because the client wants none. */
  endUnanswered(): void {
    this.#end('')
  }

  #end(last: string | Uint8Array): void {
    clearInterval(this.#heart)
    this.#res.end(last)
  }
}

function eventsOf({ status, rawHeaders, body }: StoredAnswer): string | Uint8Array | undefined {
  const type = fieldValues(rawHeaders, 'content-type').join().toLowerCase()
  const coding = fieldValues(rawHeaders, 'content-encoding').join().toLowerCase()
  if (coding !== '' && coding !== 'identity') return undefined
  if (type.startsWith('text/event-stream')) return status === 200 ? body : undefined
  const text = Buffer.from(body).toString()
  const parsed = parseJson(text)
  if (isMessage(parsed)) return event(text)
  if (!Array.isArray(parsed) || parsed.length === 0 || !parsed.every(isMessage)) return undefined
  return parsed.map(message => event(JSON.stringify(message))).join('')
}

/** One message as an event (WHATWG HTML, section 9.2). Its line breaks can only stand between the parts of the JSON. */
function event(json: string): string {
  const lines = json.split(/\r\n|\r|\n/)
  return `event: message\n${lines.map(line => `data: ${line}\n`).join('')}\n`
}
