/** The connections to one origin: which of them serves which request. */
import type { Origin } from '../base/origin.ts'
import type { Connection, ConnectionPool } from './connection.ts'
import type { UpstreamRequest } from './handler.ts'
import type { Resolution } from './resolve.ts'
import { type Waiter, WaitingQueue } from './waiting-queue.ts'

/** @param maxEach connections of one agent */
export function createPool(origin: Origin, http2: boolean, maxEach: number): ConnectionPool {
  const waiting = new WaitingQueue()
  return { origin, http2, maxEach, free: [], waiting, all: new Set(), open: 0, opening: 0, multiplexes: http2 }
}

/** The waiting request that is served next, of an agent that may have one more connection. */
export function nextWaiter({ waiting, all, maxEach }: ConnectionPool): Waiter | undefined {
  if (waiting.length === 0) return undefined
  const used = new Map<string, number>()
  for (const { takesSlot, agentId } of all) if (takesSlot) used.set(agentId, (used.get(agentId) ?? 0) + 1)
  return waiting.next(used, maxEach)
}

/**
 * Whether the agent uses as many connections as one agent may. What it does not get serves others at once, however long
 * its own requests take. HTTP/2 connections are shared and do not count.
 */
export function hasItsShare({ all, free, maxEach }: ConnectionPool, agentId = ''): boolean {
  // So few are in use that nobody can have that many.
  if (all.size - free.length < maxEach) return false
  let used = 0
  for (const connection of all) if (connection.takesSlot && connection.agentId === agentId) used += 1
  return used >= maxEach
}

/** Whether a request may wait. One agent has half of the queue at most. */
export function mayWait({ waiting }: ConnectionPool, request: UpstreamRequest, max: number): boolean {
  return waiting.length < max && waiting.of(request) < Math.ceil(max / 2)
}

/** Takes a free connection to the checked addresses. Free connections to other addresses are retired on the way. */
export function takeFree({ free }: ConnectionPool, resolution: Resolution): Connection | undefined {
  for (;;) {
    const connection = free.at(-1)
    if (connection === undefined) return undefined
    if (!connection.serves(resolution)) {
      connection.retire()
      continue
    }
    connection.take()
    if (!connection.hasCapacity) {
      free.pop()
      connection.listed = false
    }
    return connection
  }
}

/** Closes an idle connection, if there is one. */
export function retireIdle({ free }: ConnectionPool): boolean {
  const connection = free.find(({ idle }) => idle)
  connection?.retire()
  return connection !== undefined
}
