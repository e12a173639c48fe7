import { useId } from 'preact/hooks'

/** The agent reads these, and may act on them. */
export const denyPresets: readonly string[] = [
  'Not needed for your task. Go on without it.',
  'Ask the owner of the task first, then try again.',
  'Use a smaller scope: fewer records, or a dry run.',
  'The data in this request must not leave.',
]

/** Longest comment, characters. */
const most = 2_000

interface CommentProps {
  readonly value: string
  readonly onInput: (text: string) => void
  readonly presets?: readonly string[]
  readonly isFirst?: boolean
}

export function CommentField({ value, onInput, presets = [], isFirst = false }: CommentProps) {
  const id = useId()
  return (
    <div class="comment">
      <label htmlFor={id}>Comment, which the agent reads</label>
      {presets.length > 0 && (
        <ul class="presets" aria-label="Frequent comments">
          {presets.map(text => (
            <li key={text}>
              <button type="button" onClick={() => onInput(text)}>
                {text}
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        id={id}
        rows={3}
        maxLength={most}
        value={value}
        data-first={isFirst ? '' : undefined}
        onInput={event => onInput(event.currentTarget.value)}
      />
    </div>
  )
}
