import { useState } from 'preact/hooks'
import { markingsText, type Segment, segmentsOf, touching } from '../body/findings.ts'
import type { ReadBody } from '../body/kind.ts'
import { Cut } from '../parts/text.tsx'
import { sizeText, type TextKind } from '../text.ts'

/** Characters that are drawn at once. */
const firstText = 65_536
/** Bytes that are drawn at once, as hexadecimal. */
const firstBytes = 16_384

/** Text in lines. */
export function Long({ pieces, kind }: { readonly pieces: readonly Segment[]; readonly kind: TextKind }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard
    <pre class="raw" tabIndex={0}>
      <Cut pieces={pieces} kind={kind} first={firstText} isLong />
    </pre>
  )
}

export function BodyText({ body }: { readonly body: ReadBody }) {
  return <Long pieces={segmentsOf(body, { from: 0, to: body.text.length })} kind="bytes" />
}

export function BodyBytes({ body: { bytes, places } }: { readonly body: ReadBody }) {
  const [limit, setLimit] = useState(firstBytes)
  const hidden = bytes.length - limit
  const later = markingsText(touching(places, limit, bytes.length))
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <pre class="raw hex" tabIndex={0}>
        <Cut pieces={hexOf(bytes.subarray(0, limit), places)} kind="exact" first={Number.POSITIVE_INFINITY} isLong />
      </pre>
      {hidden > 0 && (
        <p class="notice">
          The first {sizeText(limit)}. {hidden.toLocaleString('en')} more bytes
          {later !== '' && `, with ${later}`}.{' '}
          <button type="button" onClick={() => setLimit(limit * 4)}>
            Show more
          </button>
        </p>
      )}
    </>
  )
}

const perLine = 16
/** Characters before the first byte of a line. */
const margin = 10

/** Sixteen bytes a line: offset, hexadecimal, and what is ASCII. */
function hexOf(bytes: Uint8Array, places: ReadBody['places']): readonly Segment[] {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += perLine) {
    const line = [...bytes.subarray(at, at + perLine)]
    const hex = line.map(byte => byte.toString(16).padStart(2, '0')).join(' ')
    const ascii = line.map(byte => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${ascii}`)
  }
  const starts: number[] = []
  let length = 0
  for (const line of lines) {
    starts.push(length)
    length += line.length + 1
  }
  const findings = touching(places, 0, bytes.length).flatMap(({ detector, from, to }) => {
    const parts = []
    for (let line = Math.floor(from / perLine); line * perLine < Math.min(to, bytes.length); line++) {
      const first = (starts[line] ?? 0) + margin
      const start = Math.max(0, from - line * perLine)
      const end = Math.min(perLine, to - line * perLine, bytes.length - line * perLine)
      parts.push({ detector, from: first + start * 3, to: first + end * 3 - 1 })
    }
    return parts
  })
  return segmentsOf({ text: lines.join('\n'), findings }, { from: 0, to: length })
}
