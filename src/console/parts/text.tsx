import { partsOf } from '../text.ts'

/** Longest text that is shown at once, characters. */
const most = 65_536

/** Text that an agent wrote: never markup, in its own direction, with unseen characters made visible. */
export function Text({ value, limit = most }: { readonly value: string; readonly limit?: number }) {
  const shown = value.length > limit ? value.slice(0, limit) : value
  return (
    <bdi class="text">
      {partsOf(shown).map(({ text, isEscape }) => (isEscape ? <mark class="escape">{text}</mark> : text))}
      {value.length > limit && '…'}
    </bdi>
  )
}
