/** Links in answers: where a client reaches a URL of an upstream through the gateway. */
import type { Linked } from '../http/addressing.ts'
import type { Exchange } from './exchange.ts'

/** The part of an exchange that decides where its answer may send the client. */
export interface LinkedAnswer extends Linked, Pick<Exchange, 'addressing' | 'credentials'> {}

/**
 * The link with which the client reaches a reference of the upstream; undefined when it cannot.
 *
 * @param reference relative to the target of the request; bytes, each as the code point of the same number
 */
export function linkTo(reference: string, exchange: LinkedAnswer): string | undefined {
  const url = URL.parse(reference.replace(/[\x80-\xff]/g, percentEncoded), exchange.target.url)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  return url !== null && isWeb ? exchange.addressing.linkTo(url, exchange) : undefined
}

const percentEncoded = (byte: string): string => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`
