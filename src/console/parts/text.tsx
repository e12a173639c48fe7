import { Fragment } from 'preact'
import { useState } from 'preact/hooks'
import { isMarked, type Marking, markingsText, type Segment } from '../body/findings.ts'
import { partsOf, type TextKind } from '../text.ts'

/** Longest text that is shown at once, characters. */
const most = 65_536
/** Each time more is asked for, this many times as much is shown. */
const growth = 4
/** Characters of a block: a browser lays out only visible blocks. */
const perBlock = 8_192

interface TextProps {
  readonly value: string
  readonly limit?: number
  readonly kind?: TextKind
  /** What it stands in. */
  readonly as?: 'code' | 'p' | 'strong'
  /** Where it leads; undefined: it is no link. */
  readonly href?: string | undefined
}

/** Text that an agent wrote: never markup, in its own direction, with unseen characters made visible. */
export function Text({ value, limit = most, kind, as, href }: TextProps) {
  const Around = as ?? Fragment
  const text = (
    <bdi class="text">
      <Parts value={value.slice(0, limit)} kind={kind} />
      {value.length > limit && '…'}
    </bdi>
  )
  return href === undefined ? <Around>{text}</Around> : <a href={href}>{text}</a>
}

/** What a person wrote about a request. */
export const Said = (text: TextProps) => (
  <blockquote class="said">
    <Text {...text} />
  </blockquote>
)

function Parts({ value, kind }: { readonly value: string; readonly kind: TextKind | undefined }) {
  return partsOf(value, kind).map(({ text, isEscape }) => (isEscape ? <mark class="escape">{text}</mark> : text))
}

interface CutProps {
  readonly pieces: readonly Segment[]
  readonly kind?: TextKind
  /** Characters that are shown at first. */
  readonly first?: number
  /** Whether it may be of many lines. */
  readonly isLong?: boolean
}

/** A text of which the beginning is shown first: how much follows is said, and it can be shown. */
export function Cut({ pieces, kind, first = 2_048, isLong = false }: CutProps) {
  const [limit, setLimit] = useState(first)
  const length = pieces.reduce((sum, { text }) => sum + text.length, 0)
  const shown = beginning(pieces, limit)
  const hidden = length - shown.reduce((sum, { text }) => sum + text.length, 0)
  const found = markingsText(pieces.slice(shown.length))
  return (
    <>
      <bdi class="text">{isLong ? <Blocks pieces={shown} kind={kind} /> : <Pieces pieces={shown} kind={kind} />}</bdi>
      {hidden > 0 && (
        <span class="cut">
          {' '}
          {hidden.toLocaleString('en')} more characters{found !== '' && `, with ${found}`}{' '}
          <button type="button" onClick={() => setLimit(limit * growth)}>
            Show more
          </button>
        </span>
      )}
    </>
  )
}

interface PiecesProps {
  readonly pieces: readonly Segment[]
  readonly kind: TextKind | undefined
}

const Pieces = ({ pieces, kind }: PiecesProps) => pieces.map(piece => <Found {...piece} kind={kind} />)

const Blocks = ({ pieces, kind }: PiecesProps) =>
  blocksOf(pieces).map((block, index) => (
    <span key={index} class="block">
      <Pieces pieces={block} kind={kind} />
    </span>
  ))

/** A block ends behind a line, or within one that is longer than a block and is wrapped anyway. */
function blocksOf(pieces: readonly Segment[]): readonly (readonly Segment[])[] {
  const blocks: Segment[][] = []
  let block: Segment[] = []
  let left = perBlock
  const end = () => {
    blocks.push(block)
    block = []
    left = perBlock
  }
  for (const { text, ...marking } of pieces) {
    for (let at = 0; at < text.length; ) {
      // A finding stays in one piece.
      const isWhole = isMarked(marking) && text.length < perBlock
      const to = isWhole ? text.length : endOfBlock(text, at, left)
      block.push({ text: text.slice(at, to), ...marking })
      left -= to - at
      at = to
      if (left <= 0 || at < text.length) end()
    }
  }
  if (block.length > 0) end()
  return blocks
}

function endOfBlock(text: string, from: number, most: number): number {
  if (text.length - from <= most) return text.length
  const line = text.slice(from, from + most).lastIndexOf('\n') + 1
  if (line > 0) return from + line
  return isHigh(text.charCodeAt(from + most - 1)) ? from + most + 1 : from + most
}

function Found({ text, kind, ...marking }: Segment & { readonly kind: TextKind | undefined }) {
  if (!isMarked(marking)) return <Parts value={text} kind={kind} />
  return (
    <mark class={classOf(marking)}>
      <Parts value={text} kind={kind} />
      {(marking.detector ?? marking.change) !== undefined && (
        <span class="finding-name">
          <Name {...marking} kind={kind} />
        </span>
      )}
    </mark>
  )
}

function classOf({ detector, change, isMatch }: Marking): string {
  const kind = detector !== undefined ? 'finding' : change === undefined ? '' : 'finding changed'
  return isMatch === true ? `${kind} match` : kind
}

/** A change has the value of before in it, which is the agent's. */
function Name({ detector, change, kind }: Marking & { readonly kind: TextKind | undefined }) {
  const separator = detector !== undefined && change !== undefined && ', '
  return (
    <>
      {detector}
      {separator}
      {change !== undefined && (
        <bdi>
          <Parts value={change} kind={kind} />
        </bdi>
      )}
    </>
  )
}

/** So many characters, and never half of one. */
function beginning(pieces: readonly Segment[], limit: number): readonly Segment[] {
  const shown: Segment[] = []
  let left = limit
  for (const piece of pieces) {
    if (left <= 0) break
    const { text } = piece
    const end = text.length > left && isHigh(text.charCodeAt(left - 1)) ? left + 1 : left
    shown.push({ ...piece, text: text.slice(0, end) })
    left -= text.length
  }
  return shown
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00
