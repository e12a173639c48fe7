/** Notes that wait to be shown to other gateways, put together: the same thing of one agent is one note with a number. */
import type { Counted } from './batch.ts'
import type { Note, Notes } from './notes.ts'

/** Notes of one agent that name what the agent can make up, such as hosts. More of them are not told. */
const mostOfAgent = 100
/** The same of all agents together. */
const most = 10_000

export class FleetNotes {
  readonly #waiting = new Map<string, [note: Note, times: number]>()
  readonly #named = new Map<string, number>()
  #allNamed = 0

  add(notes: Notes): void {
    for (const [note, times] of notes) if (isTold(note)) this.#put(note, times)
  }

  /** All notes so far; undefined when there is none. */
  take(): readonly Counted<Note>[] | undefined {
    const taken = [...this.#waiting.values()]
    this.#waiting.clear()
    this.#named.clear()
    this.#allNamed = 0
    return taken.length === 0 ? undefined : taken
  }

  #put(note: Note, times: number): void {
    const key = keyOf(note)
    const known = this.#waiting.get(key)
    if (known !== undefined) {
      known[0] = together(known, [note, times])
      known[1] += times
    } else if (this.#hasRoom(note)) this.#waiting.set(key, [note, times])
  }

  #hasRoom(note: Note): boolean {
    const agentId = namedBy(note)
    if (agentId === undefined) return true
    const named = this.#named.get(agentId) ?? 0
    if (named >= mostOfAgent || this.#allNamed >= most) return false
    this.#named.set(agentId, named + 1)
    this.#allNamed++
    return true
  }
}

/** Verdicts and changed tools are events, which every gateway hears. */
const isTold = ([kind]: Note): boolean => kind !== 'humanDenied' && kind !== 'toolChanged'

function keyOf(note: Note): string {
  switch (note[0]) {
    case 'sent':
      return `sent ${note[1]} ${note[3]}`
    case 'incident':
      return `incident ${note[1].requestId}`
    case 'hit':
    case 'shadow':
      return note.join(' ')
    default:
      return `${note[0]} ${note[1]}`
  }
}

/** The agent that chose the names in a note. */
function namedBy(note: Note): string | undefined {
  if (note[0] === 'incident') return note[1].agentId
  return note[0] === 'sent' ? note[1] : undefined
}

/** Bodies of different lengths to one host: so many of the mean length. */
function together([before, times]: Counted<Note>, [note, more]: Counted<Note>): Note {
  if (before[0] !== 'sent' || note[0] !== 'sent') return note
  const [kind, agentId, at, host, bytes] = note
  return [kind, agentId, at, host, (before[4] * times + bytes * more) / (times + more)]
}
