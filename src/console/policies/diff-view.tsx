import { useState } from 'preact/hooks'
import { Text } from '../parts/text.tsx'
import { type DiffLine, nearChanges } from './diff.ts'

/** The lines that were added and removed, with some around them, or all. */
export function DiffView({ lines }: { readonly lines: readonly DiffLine[] }) {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? lines.map(() => true) : nearChanges(lines)
  return (
    <>
      <label class="check">
        <input type="checkbox" checked={isWhole} onChange={event => setWhole(event.currentTarget.checked)} />
        The whole text
      </label>
      <Lines lines={lines} shown={shown} />
    </>
  )
}

function Lines({ lines, shown }: { readonly lines: readonly DiffLine[]; readonly shown: readonly boolean[] }) {
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
