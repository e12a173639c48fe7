/** Notes that wait to be sent to other gateways, grouped: equal notes of one agent are one note with a number. */
import type { Counted } from './batch.ts'
import type { Note, NoteBatch, SentNote } from './notes.ts'

/**
 * Maximum of notes of one kind and agent with names that the agent can invent, such as hosts. Further names are not sent.
 */
const maxOfAgent = 100
/** The same for all agents together. */
const max = 10_000

export class FleetNotes {
  readonly #waiting = new Map<string, Counted<Note>>()
  /** Counts for each kind, and for each kind and agent: refused requests must not use up the notes for sent ones. */
  readonly #named = new Map<string, number>()

  add(notes: NoteBatch): void {
    for (const note of notes) if (isShared(note)) this.#put(note)
  }

  /** All notes so far; undefined when there is none. */
  take(): readonly Counted<Note>[] | undefined {
    const taken = [...this.#waiting.values()]
    this.#waiting.clear()
    this.#named.clear()
    return taken.length === 0 ? undefined : taken
  }

  #put(counted: Counted<Note>): void {
    const [note] = counted
    const key = keyOf(note)
    const known = this.#waiting.get(key)
    if (known !== undefined) this.#waiting.set(key, together(known, counted))
    else if (this.#hasCapacity(note)) this.#waiting.set(key, counted)
    else if (note[0] === 'sent' && note[4] > 0) this.#put([toOthers(note), counted[1]])
  }

  #hasCapacity(note: Note): boolean {
    const agentId = namedBy(note)
    if (agentId === undefined) return true
    const [kind] = note
    const ofAgent = `${kind} ${agentId}`
    const [named, ofAll] = [this.#named.get(ofAgent) ?? 0, this.#named.get(kind) ?? 0]
    if (named >= maxOfAgent || ofAll >= max) return false
    this.#named.set(ofAgent, named + 1).set(kind, ofAll + 1)
    return true
  }
}

/** Verdicts and changed tools are events, which every gateway gets from the feed. */
const isShared = ([[kind]]: Counted<Note>): boolean => kind !== 'humanDenied' && kind !== 'toolChanged'

function keyOf(note: Note): string {
  switch (note[0]) {
    case 'sent':
      return `sent ${note[1]} ${note[3]}`
    case 'incident':
      return `incident ${note[1].requestId}`
    case 'hit':
      return `hit ${note[1]} ${note[2]}`
    case 'shadow':
      return note.join(' ')
    default:
      return `${note[0]} ${note[1]}`
  }
}

/** The agent that chose the names in a note. */
function namedBy(note: Note): string | undefined {
  if (note[0] === 'incident') return note[1].agentId
  return note[0] === 'sent' && note[3] !== otherHosts ? note[1] : undefined
}

/** Stands for hosts that are not sent by name: no host has this name. */
const otherHosts = ''

/** Requests count even when the agent has too many hosts to send their names. */
const toOthers = ([kind, agentId, at, , bytes]: SentNote): SentNote => [kind, agentId, at, otherHosts, bytes]

function together([before, times]: Counted<Note>, [note, more]: Counted<Note>): Counted<Note> {
  if (before[0] === 'sent' && note[0] === 'sent') return sentTogether([before, times], [note, more])
  if (before[0] !== 'hit' || note[0] !== 'hit') return [note, times + more]
  const [kind, policy, rule, count] = note
  return [[kind, policy, rule, before[3] * times + count * more], 1]
}

/**
 * Bodies of different lengths to one host become the same number of bodies of the mean length. A host without bodies adds
 * none.
 */
function sentTogether([before, times]: Counted<SentNote>, [note, more]: Counted<SentNote>): Counted<Note> {
  const [kind, agentId, at, host, bytes] = note
  if (bytes === 0) return [[kind, agentId, at, host, before[4]], times]
  const bodies = before[4] === 0 ? more : times + more
  return [[kind, agentId, at, host, (before[4] * times + bytes * more) / bodies], bodies]
}
