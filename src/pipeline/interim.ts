import type { ServerResponse } from 'node:http'
import { downstreamFields } from '../http/headers.ts'
import type { ResponseHead } from '../upstream/handler.ts'
import type { Exchange } from './exchange.ts'

/** Passes an interim answer on to the client that asked for the request (RFC 9110 section 15.2). */
export function passInterim({ res, req }: Exchange, { status, fields: received }: ResponseHead): void {
  if (status < 102 || req.httpVersion !== '1.1' || res.headersSent) return
  const fields = pairs(downstreamFields(received))
  if (status === 102) res.writeProcessing()
  else if (status === 103 && fields.some(([name]) => name.toLowerCase() === 'link')) writeHints(res, hintsOf(fields))
}

/** Fields as pairs, from a flat list. */
export function pairs(fields: readonly string[]): [string, string][] {
  const out: [string, string][] = []
  for (let i = 0; i < fields.length; i += 2) out.push([fields[i]!, fields[i + 1]!])
  return out
}

/** Node refuses some forms of links that RFC 8288 allows, and throws: those hints are left out. */
function writeHints(res: ServerResponse, hints: Record<string, string | string[]>): void {
  try {
    res.writeEarlyHints(hints)
  } catch {
    // The answer itself is still to come.
  }
}

function hintsOf(fields: readonly (readonly [string, string])[]): Record<string, string | string[]> {
  // Without a prototype: the upstream chooses the names.
  const hints: Record<string, string[]> = Object.create(null)
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    const before = hints[lower] ?? []
    hints[lower] = [...before, value]
  }
  return hints
}
