/** The connections to one origin: which of them serves which request. */
import type { Origin } from '../base/origin.ts'
import type { Connection, Pool } from './connection.ts'
import type { Resolution } from './resolve.ts'
import type { Waiter } from './waiting-line.ts'
import { WaitingLine } from './waiting-line.ts'

export function createPool(origin: Origin, http2: boolean): Pool {
  const waiting = new WaitingLine()
  return { origin, http2, free: [], waiting, all: new Set(), open: 0, opening: 0, multiplexes: http2 }
}

/** The waiting request that is served next: no agent has more than its part while another wants some. */
export function nextWaiter({ waiting, all }: Pool): Waiter | undefined {
  return waiting.next(() => {
    const used = new Map<string, number>()
    for (const { idle, agentId } of all) if (!idle) used.set(agentId, (used.get(agentId) ?? 0) + 1)
    return used
  })
}

/** Takes a free connection to the checked addresses. Free connections to other addresses are retired on the way. */
export function takeFree({ free }: Pool, resolution: Resolution): Connection | undefined {
  for (;;) {
    const connection = free.at(-1)
    if (connection === undefined) return undefined
    if (!connection.serves(resolution)) {
      connection.retire()
      continue
    }
    connection.take()
    if (!connection.hasRoom) {
      free.pop()
      connection.listed = false
    }
    return connection
  }
}

/** Closes an idle connection, if there is one. */
export function retireIdle({ free }: Pool): boolean {
  const connection = free.find(({ idle }) => idle)
  connection?.retire()
  return connection !== undefined
}
