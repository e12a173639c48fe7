import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { mostMatches } from '../body/matches.ts'
import { announce } from '../notices.ts'
import { save } from '../parts/save.ts'

interface FindProps {
  /** Undefined: nothing is looked for. */
  readonly count: number | undefined
  readonly onInput: (text: string) => void
  /** Where the body is drawn. */
  readonly place: RefObject<HTMLElement | null>
}

/** How long the typing must rest before the body is searched, milliseconds. */
const restMs = 200

/** Marks a text wherever it is in the body, and goes from one to the next. */
export function Find({ count, onInput, place }: FindProps) {
  const [text, setText] = useState('')
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const at = useRef(-1)
  useEffect(() => () => clearTimeout(timer.current), [])
  const type = (typed: string) => {
    setText(typed)
    at.current = -1
    clearTimeout(timer.current)
    timer.current = setTimeout(() => onInput(typed), restMs)
  }
  const next = (by: 1 | -1) => {
    const marks = [...(place.current?.querySelectorAll('.match') ?? [])]
    if (marks.length === 0) return announce('The matches are in parts that are closed. Their counts are shown there.')
    at.current = (at.current + by + marks.length) % marks.length
    for (const mark of marks) mark.classList.toggle('current', mark === marks[at.current])
    marks[at.current]?.scrollIntoView({ block: 'center' })
  }
  return (
    <div class="find">
      <input
        type="search"
        placeholder="Find"
        aria-label="Find in the body"
        value={text}
        spellcheck={false}
        onInput={event => type(event.currentTarget.value)}
        onKeyDown={event => event.key === 'Enter' && next(event.shiftKey ? -1 : 1)}
      />
      {count !== undefined && (
        <>
          <span class="hint" role="status">
            {count === mostMatches ? `${count} or more` : count}
          </span>
          <button type="button" class="plain" aria-label="Previous match" onClick={() => next(-1)}>
            ↑
          </button>
          <button type="button" class="plain" aria-label="Next match" onClick={() => next(1)}>
            ↓
          </button>
        </>
      )}
    </div>
  )
}

/** The exact bytes, as a file that no program opens by itself. */
export function Download({ bytes, name }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly name: string }) {
  const type = 'application/octet-stream'
  return (
    <button type="button" onClick={() => save(new Blob([bytes], { type }), `${name}.bin`)}>
      Download
    </button>
  )
}
