import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Completion, completionsAt } from './completion.ts'
import { lineOf, startOf } from './places.ts'

/** Something to say about a place in the text. */
export interface Note {
  readonly tone: 'bad' | 'warn'
  readonly message: string
  /** Characters from the beginning. */
  readonly at: number
}

interface AreaProps {
  readonly text: string
  readonly notes: readonly Note[]
  readonly onInput: (text: string) => void
}

/** A text with numbered lines, what is wrong with them, and names that complete (Ctrl and space, or while one types). */
export function PolicyText({ text, notes, onInput }: AreaProps) {
  const area = useRef<HTMLTextAreaElement>(null)
  const gutter = useRef<HTMLOListElement>(null)
  const [offer, setOffer] = useState<Completion>()
  const [chosen, setChosen] = useState(0)
  const cursor = useRef<number>(undefined)
  // A completion puts the cursor behind what it wrote.
  useLayoutEffect(() => {
    if (cursor.current === undefined) return
    area.current?.setSelectionRange(cursor.current, cursor.current)
    cursor.current = undefined
  }, [text])
  const lines = text.split('\n').length
  const tones = new Map(notes.toReversed().map(({ at, tone }) => [lineOf(text, at), tone]))
  const take = (word: string) => {
    if (offer === undefined) return
    cursor.current = offer.from + word.length
    setOffer(undefined)
    onInput(text.slice(0, offer.from) + word + text.slice(offer.to))
  }
  const look = (element: HTMLTextAreaElement, isAsked: boolean) => {
    const found = completionsAt(element.value, element.selectionStart, isAsked)
    setChosen(0)
    setOffer(found.words.length > 0 ? found : undefined)
  }
  const press = (event: KeyboardEvent & { readonly currentTarget: HTMLTextAreaElement }) => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault()
      return look(event.currentTarget, true)
    }
    if (offer === undefined) return
    const { length } = offer.words
    if (event.key === 'ArrowDown') setChosen((chosen + 1) % length)
    else if (event.key === 'ArrowUp') setChosen((chosen - 1 + length) % length)
    else if (event.key === 'Enter' && !event.ctrlKey) take(offer.words[chosen] ?? '')
    else if (event.key === 'Escape') setOffer(undefined)
    else return
    event.preventDefault()
  }
  return (
    <div class="editor">
      <ol class="gutter" ref={gutter} aria-hidden="true">
        {Array.from({ length: lines }, (_, index) => (
          <li key={index} class={tones.get(index + 1)}>
            {index + 1}
          </li>
        ))}
      </ol>
      <textarea
        ref={area}
        id="policy-text"
        aria-label="Policy, as JSON. Control and space complete a name."
        aria-autocomplete="list"
        aria-controls={offer && 'policy-words'}
        aria-activedescendant={offer && `policy-word-${chosen}`}
        value={text}
        rows={Math.min(36, Math.max(18, lines))}
        spellcheck={false}
        autocomplete="off"
        wrap="off"
        onInput={event => {
          onInput(event.currentTarget.value)
          look(event.currentTarget, false)
        }}
        onKeyDown={press}
        onBlur={() => setOffer(undefined)}
        onScroll={event => gutter.current?.scrollTo(0, event.currentTarget.scrollTop)}
      />
      {offer !== undefined && (
        <div id="policy-words" class="words" role="listbox" aria-label="Names">
          {offer.words.map((word, index) => (
            <div
              key={word}
              id={`policy-word-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen}
              // The text keeps the focus.
              onMouseDown={event => {
                event.preventDefault()
                take(word)
              }}
            >
              {word}
            </div>
          ))}
        </div>
      )}
    </div>
  )
}

/** Puts the cursor where a note is. */
export function goTo(text: string, at: number): void {
  const area = document.getElementById('policy-text')
  if (!(area instanceof HTMLTextAreaElement)) return
  const line = lineOf(text, at)
  const from = startOf(text, line)
  area.focus()
  area.setSelectionRange(from, Math.max(from, startOf(text, line + 1) - 1))
  area.scrollTop = (line - 4) * Number.parseFloat(getComputedStyle(area).lineHeight)
}
