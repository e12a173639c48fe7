import { randomFillSync } from 'node:crypto'

/** Random bytes for many nonces: asking the system for each nonce takes as long as sealing. */
const pool = Buffer.alloc(8_192)
let taken = pool.length

/** Fresh random bytes of the system's generator. No byte is given twice. */
export function takeRandom(length: number): Buffer {
  if (taken + length > pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  taken += length
  return Buffer.from(pool.subarray(taken - length, taken))
}

/**
 * Id of a request: 128 random bits behind the time. New ids are then next to each other in the indexes of the store; ids
 * without an order would each change another page.
 *
 * @param now milliseconds since the epoch
 */
export function createId(now: number): string {
  return now.toString(36) + takeRandom(16).toString('base64url')
}
