import type { Board } from '../storage/postgres/board.ts'
import { FleetNotes } from './fleet-notes.ts'
import type { NoteBatch, NoteLink } from './notes.ts'

/** Time between two looks at the board, milliseconds. */
const everyMs = 2_000

/** Carries notes to the other gateways on the same database. Notes that cannot be sent when they are due are lost. */
export function linkFleet(board: Board): NoteLink {
  const waiting = new FleetNotes()
  let take: (notes: NoteBatch) => void = () => {}
  let isBusy = false

  async function exchange(): Promise<void> {
    const notes = waiting.take()
    // Only gateways of this fleet post to the board, and only notes.
    for (const text of await board.exchange(notes && JSON.stringify(notes))) take(JSON.parse(text) as NoteBatch)
  }

  function look(): void {
    if (isBusy) return
    isBusy = true
    // The feed reports that the database is away.
    exchange()
      .catch(() => {})
      .finally(() => {
        isBusy = false
      })
  }

  // The first read has the posts of the time before.
  look()
  const timer = setInterval(look, everyMs).unref()
  return {
    send: notes => waiting.add(notes),
    receive(taker) {
      take = taker
    },
    close: () => clearInterval(timer),
  }
}
