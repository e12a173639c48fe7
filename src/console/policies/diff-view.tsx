import { Text } from '../parts/text.tsx'
import type { DiffLine } from './diff.ts'

/** Equal lines that are shown around a change. */
const context = 3

/** The lines that were added and removed, with some around them. */
export function DiffView({ lines }: { readonly lines: readonly DiffLine[] }) {
  const shown = lines.map((_, index) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== 'same'),
  )
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
    <pre class="raw diff" tabIndex={0}>
      {lines.map(({ kind, text }, index) => {
        if (shown[index] !== true) return shown[index - 1] === true ? <span class="hint">…{'\n'}</span> : null
        if (kind === 'added') return <ins>+ {<Text value={text} />}</ins>
        if (kind === 'removed') return <del>- {<Text value={text} />}</del>
        return (
          <span>
            {'  '}
            <Text value={text} />
          </span>
        )
      })}
    </pre>
  )
}
