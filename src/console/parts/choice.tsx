import { useId } from 'preact/hooks'
import { visibleText } from '../text.ts'

export type Options = readonly (readonly [value: string, text: string])[]

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: Options
  readonly onChange: (value: string) => void
  /** Whether it stands among the filters of a list. */
  readonly isFilter?: boolean
  /** Whether it gets the focus of its dialog. */
  readonly isFirst?: boolean
}

/** One of several, with its name above it. */
export function Choice({ label, value, options, onChange, isFilter = false, isFirst = false }: ChoiceProps) {
  const id = useId()
  return (
    <div class={isFilter ? 'filter' : 'comment'}>
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        data-first={isFirst ? '' : undefined}
        value={value}
        onChange={event => onChange(event.currentTarget.value)}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {visibleText(text)}
          </option>
        ))}
      </select>
    </div>
  )
}
