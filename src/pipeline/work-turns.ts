import { once } from '../base/once.ts'
import { stepsPerTurn } from '../policy/turns/evaluation.ts'
import type { Divided } from '../policy/turns/turns.ts'
import type { Work } from '../policy/values/work.ts'

/** Turns of the event loop for work that would keep other requests waiting if it were done at once. */
export type WorkTurns = ReturnType<typeof createWorkTurns>

interface AgentQueue {
  readonly agentId: string
  readonly resolves: (() => void)[]
}

/**
 * Work of about one turn in each round of the event loop, however many agents ask: other requests are served in
 * between. The agents that wait get their turns one after the other, so that one with many bodies holds up only itself.
 *
 * @param soon calls back in the next round of the event loop
 */
export function createWorkTurns(soon: (work: () => void) => void = setImmediate) {
  // In the order of turns. Not a Map, whose former tables would keep what waits alive (see SlotList).
  const waiting: AgentQueue[] = []
  let left = stepsPerTurn
  const schedule = once(soon, () => {
    left = stepsPerTurn
    grant()
  })

  const grant = () => {
    const next = waiting.shift()
    if (next === undefined) return
    const go = next.resolves.shift()
    if (next.resolves.length > 0) waiting.push(next)
    if (waiting.length > 0) schedule()
    go?.()
  }

  /**
   * The next one has its turn when all has run to which the work before it leads: a body that was decided on is searched
   * and sent while the processor has it in its cache.
   */
  const goOn = () => {
    if (left > 0) grant()
  }

  return {
    /** Whether short work may be done at once: the work of this round of the event loop has not taken its steps. */
    get hasCapacity() {
      return left > 0 && waiting.length === 0
    },
    /**
     * Resolves when the next turn of this agent has come.
     *
     * @param begun the work has had a turn before: it comes before other work of the agent, which holds less memory
     */
    next(agentId: string, begun = false) {
      const { promise, resolve } = Promise.withResolvers<void>()
      schedule()
      const resolves = waiting.find(queue => queue.agentId === agentId)?.resolves
      if (resolves === undefined) waiting.push({ agentId, resolves: [resolve] })
      else if (begun) resolves.unshift(resolve)
      else resolves.push(resolve)
      return promise
    },
    /** Counts the steps of a piece of work. */
    spend(steps: number) {
      left -= steps
      if (left <= 0) schedule()
      else if (waiting.length > 0) process.nextTick(goOn)
    },
  }
}

export async function workInTurns(work: Work, agentId: string, turns: WorkTurns): Promise<void> {
  for (let again = false; ; again = true) {
    await turns.next(agentId, again)
    if (workOneTurn(work, turns)) return
  }
}

/**
 * Does divided work in turns of the agent, at once while there is capacity.
 *
 * @param steps of each part
 */
export async function doPartsInTurns<T>(
  parts: Divided<T>,
  { agentId, steps, turns }: { readonly agentId: string; readonly steps: number; readonly turns: WorkTurns },
): Promise<T> {
  for (let begun = false; ; begun = true) {
    if (begun || !turns.hasCapacity) await turns.next(agentId, begun)
    const { done, value } = parts.next()
    turns.spend(steps)
    if (done === true) return value
  }
}

/** Does one turn of the work. True when it is finished. */
export function workOneTurn(work: Work, turns: WorkTurns): boolean {
  const budget = { left: stepsPerTurn }
  const isDone = work.advance(budget)
  turns.spend(stepsPerTurn - budget.left)
  return isDone
}
