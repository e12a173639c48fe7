import { useId } from 'preact/hooks'
import type { Draft } from './draft.ts'

interface FormProps {
  readonly draft: Draft
  readonly onInput: (draft: Draft) => void
  readonly onEnter?: () => void
}

export function RequestForm({ draft, onInput, onEnter }: FormProps) {
  const id = useId()
  const line = (name: 'method' | 'url', label: string) => (
    <div class={name}>
      <label htmlFor={`${id}-${name}`}>{label}</label>
      <input
        id={`${id}-${name}`}
        value={draft[name]}
        spellcheck={false}
        autocomplete="off"
        placeholder={name === 'url' ? 'https://api.example/v1/items' : undefined}
        onInput={event => onInput({ ...draft, [name]: event.currentTarget.value })}
        onKeyDown={event => event.key === 'Enter' && draft.url !== '' && onEnter?.()}
      />
    </div>
  )
  const area = (name: 'headers' | 'body', label: string) => (
    <div>
      <label htmlFor={`${id}-${name}`}>{label}</label>
      <textarea
        id={`${id}-${name}`}
        rows={4}
        value={draft[name]}
        spellcheck={false}
        onInput={event => onInput({ ...draft, [name]: event.currentTarget.value })}
      />
    </div>
  )
  return (
    <div class="explain-form">
      {line('method', 'Method')}
      {line('url', 'URL')}
      {area('headers', 'Header fields, one a line')}
      {area('body', 'Body')}
    </div>
  )
}
