import { useState } from 'preact/hooks'
import { Text } from '../parts/text.tsx'

/** Members of one object that are drawn at once. */
const atOnce = 100
/** Levels that are open at first, for values that are not large. */
const openLevels = 3

/** JSON as a tree. What is closed is not drawn. */
export function Json({ value }: { readonly value: unknown }) {
  return (
    <div class="json">
      <Value value={value} level={0} />
    </div>
  )
}

interface ValueProps {
  readonly value: unknown
  readonly level: number
}

function Value({ value, level }: ValueProps) {
  if (typeof value === 'string') {
    return (
      <span class="json-string">
        "<Text value={value} limit={8_192} />"
      </span>
    )
  }
  if (typeof value !== 'object' || value === null) return <span class="json-plain">{String(value)}</span>
  return <Inner value={value} level={level} />
}

function Inner({ value, level }: { readonly value: object; readonly level: number }) {
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  const [isOpen, setOpen] = useState(level < openLevels && entries.length <= atOnce)
  const [count, setCount] = useState(atOnce)
  if (entries.length === 0) return <span class="json-plain">{isList ? '[]' : '{}'}</span>
  return (
    <span class="json-inner">
      <button type="button" class="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isList ? `[${entries.length}]` : `{${entries.length}}`}
      </button>
      {isOpen && (
        <ul>
          {entries.slice(0, count).map(([name, inner]) => (
            <li key={name}>
              <span class="json-name">
                <Text value={name} limit={300} />
              </span>
              : <Value value={inner} level={level + 1} />
            </li>
          ))}
          {entries.length > count && (
            <li>
              <button type="button" onClick={() => setCount(count * 4)}>
                {entries.length - count} more
              </button>
            </li>
          )}
        </ul>
      )}
    </span>
  )
}
