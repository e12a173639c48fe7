/** A queue of work of several owners, with a maximum of work that runs at once. */

export interface FairQueueLimits {
  /** Maximum of work at once, of all owners together and of one owner. */
  readonly atOnce: number
  readonly atOnceEach: number
  readonly waitingEach: number
}

/** A piece of work. It may be in the queues of several owners; the first one whose turn comes starts it. */
export interface QueuedWork {
  readonly waits: boolean
  /** @param done ends the work; call it once */
  start(done: () => void): void
}

interface Owner {
  running: number
  readonly waiting: QueuedWork[]
}

/** Owners take turns, so that one of them delays another by at most `atOnce` pieces of work. */
export function createFairQueue({ atOnce, atOnceEach, waitingEach }: FairQueueLimits) {
  // The order of turns: the owner that was served last is at the end. Only owners with work are in it.
  const owners = new Map<string, Owner>()
  let running = 0

  const runOne = (): boolean => {
    for (const [name, owner] of owners) {
      const work = owner.running < atOnceEach ? owner.waiting.shift() : undefined
      if (work === undefined) continue
      owners.delete(name)
      owners.set(name, owner)
      if (work.waits) start(name, owner, work)
      else forgetIdle(name, owner)
      return true
    }
    return false
  }

  const start = (name: string, owner: Owner, work: QueuedWork): void => {
    running += 1
    owner.running += 1
    work.start(() => {
      running -= 1
      owner.running -= 1
      run()
      forgetIdle(name, owner)
    })
  }

  const forgetIdle = (name: string, owner: Owner): void => {
    if (owner.running === 0 && owner.waiting.length === 0) owners.delete(name)
  }

  const run = (): void => {
    while (running < atOnce && runOne());
  }

  return {
    /** Starts the work when its owner's turn comes. False: the owner has too much waiting already. */
    enter(name: string, work: QueuedWork): boolean {
      const owner = owners.get(name) ?? { running: 0, waiting: [] }
      if (owner.waiting.length >= waitingEach) return false
      owners.set(name, owner)
      owner.waiting.push(work)
      run()
      return true
    },
  }
}
