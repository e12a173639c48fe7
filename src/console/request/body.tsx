import { useMemo, useState } from 'preact/hooks'
import { Text } from '../parts/text.tsx'
import { sizeText } from '../text.ts'
import type { HitlRequest } from '../types.ts'
import { type BodyKind, readBody } from './body-kind.ts'
import { Json } from './json.tsx'

/** Text that is drawn at once, characters. */
const firstPart = 65_536

/** The body as what it is, or as text. */
export function Body({ view }: { readonly view: HitlRequest }) {
  const [isRaw, setRaw] = useState(false)
  const kind = useMemo(() => readBody(view), [view.body, view.bodyEncoding])
  if (kind.kind === 'none') return null
  if (kind.kind === 'sealed') {
    return (
      <p class="notice warn">
        The body is sealed under a key that the gateway does not have any more. It cannot be shown, and an approval is
        refused.
      </p>
    )
  }
  if (kind.kind === 'deleted')
    return <p class="notice">The header fields and the body were deleted when the agent withdrew the request.</p>
  const hasRaw = kind.kind !== 'text' && kind.kind !== 'hex'
  return (
    <div class="body">
      {hasRaw && (
        <label class="check">
          <input type="checkbox" checked={isRaw} onChange={event => setRaw(event.currentTarget.checked)} />
          As text
        </label>
      )}
      {isRaw ? <Long text={view.body} /> : <Shown kind={kind} />}
    </div>
  )
}

function Shown({ kind }: { readonly kind: BodyKind }) {
  switch (kind.kind) {
    case 'tool':
      return (
        <>
          <p class="tool">
            MCP tool <strong>{kind.tool}</strong>
          </p>
          <Json value={kind.arguments} />
        </>
      )
    case 'messages':
      return (
        <>
          <p class="hint">{kind.model}</p>
          <ol class="messages">
            {kind.messages.map(({ role, text }) => (
              <li>
                <strong>{role}</strong>
                <Long text={text} />
              </li>
            ))}
          </ol>
          <details>
            <summary>Everything</summary>
            <Json value={kind.value} />
          </details>
        </>
      )
    case 'json':
      return <Json value={kind.value} />
    case 'form':
      return (
        <table class="grid">
          <caption class="hidden">Form</caption>
          <tbody>
            {kind.pairs.map(([name, value]) => (
              <tr>
                <th scope="row">
                  <Text value={name} limit={300} />
                </th>
                <td>
                  <Text value={value} limit={8_192} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )
    case 'hex':
      return <Long text={kind.text} />
    case 'text':
      return <Long text={kind.text} />
    default:
      return null
  }
}

/** A long text, of which the beginning is drawn first. */
function Long({ text }: { readonly text: string }) {
  const [all, setAll] = useState(false)
  const rest = text.length - firstPart
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <pre class="raw" tabIndex={0}>
        <Text value={text} limit={all ? text.length : firstPart} />
      </pre>
      {rest > 0 && !all && (
        <p class="notice">
          The first {sizeText(firstPart)} of {sizeText(text.length)}.{' '}
          <button type="button" onClick={() => setAll(true)}>
            Show all
          </button>
        </p>
      )}
    </>
  )
}
