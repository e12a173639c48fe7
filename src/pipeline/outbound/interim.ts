import type { ServerResponse } from 'node:http'
import { downstreamFields, fieldValues } from '../../http/headers.ts'
import type { ResponseHead } from '../../upstream/handler.ts'
import type { Exchange } from '../exchange.ts'
import type { LinkedAnswer } from '../links.ts'
import { linkField } from './answer-fields.ts'

/** Passes an interim answer on to the client (RFC 9110 section 15.2), with `Link` as its only field. */
export function passInterim(exchange: Exchange & LinkedAnswer, { status, fields: received }: ResponseHead): void {
  const { res, req } = exchange
  if (status < 102 || req.httpVersion !== '1.1' || res.headersSent) return
  if (status === 102) res.writeProcessing()
  else if (status === 103) writeHints(res, hintsOf(received, exchange))
}

/**
 * One link that node takes. Its own check goes over equals signs in a name again and again: 16 KiB of them, which an upstream may
 * send sixteen times, would take it a second.
 */
const plainLink = /^<[^>]*>(?:\s*;\s*[^;"\s=]+(?:="[^;"\s]*"|=[^;"\s]*)?)*$/

/** The values of `Link`, as the answer itself would have them. */
function hintsOf(received: readonly string[], exchange: LinkedAnswer): string[] {
  const hints = fieldValues(downstreamFields(received), 'link').map(value => linkField(value, exchange))
  return hints.filter((value): value is string => value !== undefined && plainLink.test(value))
}

/** Fields as pairs, from a flat list. */
export function pairs(fields: readonly string[]): [string, string][] {
  const out: [string, string][] = []
  for (let i = 0; i < fields.length; i += 2) out.push([fields[i]!, fields[i + 1]!])
  return out
}

/** Node refuses some forms of links that RFC 8288 allows, and throws: those hints are left out. */
function writeHints(res: ServerResponse, link: string[]): void {
  if (link.length === 0) return
  try {
    res.writeEarlyHints({ link })
  } catch {
    // The answer itself is still to come.
  }
}
