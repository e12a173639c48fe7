/** The server that all clients call: for each mode, in the form that a client expects. */
import { createReadStream, readFileSync, statSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { type Origin, type Seen, startSecureOrigin } from '../../fixtures/origin.ts'
import { greeting, isStreamed, type Mode, modes, parts } from './modes.ts'

/** A request, after its path was read. */
export interface Asked {
  readonly mode: Mode
  readonly client: string
  /** What the path has behind mode and client; empty, or with its slash. */
  readonly rest: string
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly seen: Seen
  /** Path of the large file. */
  readonly file: string
  /** To be called when the first part of a streamed answer was sent; resolves when the last one may come. */
  readonly untilReleased: () => Promise<void>
  /** URL of the mode and the client. */
  readonly url: string
}

/** Answers what it knows, and returns true then. */
export type Server = (asked: Asked) => boolean

export interface Upstream {
  readonly origin: Origin
  url(mode: Mode, client: string): string
  /** Whether the first part of a streamed answer was sent to a client. */
  hasBegun(mode: Mode, client: string): boolean
  /** Lets the last part of streamed answers to a client come. */
  release(mode: Mode, client: string): void
  /** Requests that a client made in a mode. */
  seen(mode: Mode, client: string): readonly Seen[]
}

const path = new RegExp(`^(?:/v2)?/(${Object.keys(modes).join('|')})/([\\w-]+)([/?].*)?$`)

/** @param servers those of protocols; what none of them knows is answered as plain HTTP */
export async function startUpstream(t: Test, file: string, servers: readonly Server[]): Promise<Upstream> {
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const gate = (key: string): PromiseWithResolvers<void> => {
    const found = gates.get(key) ?? Promise.withResolvers<void>()
    gates.set(key, found)
    return found
  }
  const begun = new Set<string>()
  const origin = await startSecureOrigin(t, (req, res, seen) => {
    const [, mode, client = '', rest = ''] = path.exec(req.url ?? '') ?? []
    const key = `${mode}/${client}`
    const untilReleased = (): Promise<void> => {
      begun.add(key)
      return gate(key).promise
    }
    const asked = { mode: mode as Mode, client, rest, req, res, seen, file, untilReleased }
    const withUrl = { ...asked, url: `${origin.url}/${key}` }
    if (!servers.some(answers => answers(withUrl))) answerPlain(withUrl)
  })
  return {
    origin,
    url: (mode, client) => `${origin.url}/${mode}/${client}`,
    hasBegun: (mode, client) => begun.has(`${mode}/${client}`),
    release: (mode, client) => gate(`${mode}/${client}`).resolve(),
    seen: (mode, client) => origin.seen.filter(({ target }) => target.includes(`/${mode}/${client}`)),
  }
}

function answerPlain(asked: Asked): void {
  const { mode, req, res, seen, file } = asked
  if (mode === undefined) res.writeHead(404).end()
  else if (isStreamed(mode)) {
    res.writeHead(200, { 'Content-Type': 'text/plain' }).write(`${parts.first}\n`)
    void asked.untilReleased().then(() => res.end(`${parts.last}\n`))
  } else if (mode === 'down') sendFile(asked, file)
  else if (mode === 'up') {
    // Clients of S3 take another body than XML for an error.
    const body = () => (req.method === 'PUT' ? '' : `${sumOf(seen)}\n`)
    req.on('end', () => res.setHeader('ETag', sumOf(seen)).end(body()))
  } else res.end(`${greeting}\n`)
}

const sumOf = ({ bodyBytes, sha256 }: Seen): string => `${bodyBytes} ${sha256}`

export function sendFile(asked: Asked, file: string): void {
  const { mode, res } = asked
  res.writeHead(200, { 'Content-Length': statSync(file).size, 'Content-Type': 'application/octet-stream' })
  if (isStreamed(mode)) sendInParts(asked, readFileSync(file))
  else createReadStream(file).pipe(res)
}

/** Sends the half of a body, and the rest once the test says so. */
export function sendInParts({ res, untilReleased }: Asked, body: Buffer): void {
  const half = body.length >> 1
  res.write(body.subarray(0, half))
  void untilReleased().then(() => res.end(body.subarray(half)))
}
