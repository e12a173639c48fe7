import { useState } from 'preact/hooks'
import { partsOf, plural, type TextKind } from '../text.ts'

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
}

/** Text that an agent wrote: never markup, in its own direction, with unseen characters made visible. */
export function Text({ value, limit = most, kind }: TextProps) {
  const shown = value.slice(0, limit)
  return (
    <bdi class="text">
      <Parts value={shown} kind={kind} />
      {value.length > limit && '…'}
    </bdi>
  )
}

function Parts({ value, kind }: { readonly value: string; readonly kind: TextKind | undefined }) {
  return partsOf(value, kind).map(({ text, isEscape }) => (isEscape ? <mark class="escape">{text}</mark> : text))
}

/** A piece of a text, in which a detector found something or not. */
interface Piece {
  readonly text: string
  readonly detector?: string | undefined
}

interface CutProps {
  readonly pieces: readonly Piece[]
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
  const found = pieces.slice(shown.length).filter(({ detector }) => detector !== undefined).length
  return (
    <>
      <bdi class="text">{isLong ? <Blocks pieces={shown} kind={kind} /> : <Pieces pieces={shown} kind={kind} />}</bdi>
      {hidden > 0 && (
        <span class="cut">
          {' '}
          {hidden.toLocaleString('en')} more characters{found > 0 && `, with ${plural(found, 'finding')}`}{' '}
          <button type="button" onClick={() => setLimit(limit * growth)}>
            Show more
          </button>
        </span>
      )}
    </>
  )
}

interface PiecesProps {
  readonly pieces: readonly Piece[]
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
function blocksOf(pieces: readonly Piece[]): readonly (readonly Piece[])[] {
  const blocks: Piece[][] = []
  let block: Piece[] = []
  let left = perBlock
  const end = () => {
    blocks.push(block)
    block = []
    left = perBlock
  }
  for (const { text, detector } of pieces) {
    for (let at = 0; at < text.length; ) {
      // A finding stays in one piece.
      const isWhole = detector !== undefined && text.length < perBlock
      const to = isWhole ? text.length : endOfBlock(text, at, left)
      block.push({ text: text.slice(at, to), detector })
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

function Found({ text, detector, kind }: Piece & { readonly kind: TextKind | undefined }) {
  if (detector === undefined) return <Parts value={text} kind={kind} />
  return (
    <mark class="finding">
      <Parts value={text} kind={kind} />
      <span class="finding-name">{detector}</span>
    </mark>
  )
}

/** So many characters, and never half of one. */
function beginning(pieces: readonly Piece[], limit: number): readonly Piece[] {
  const shown: Piece[] = []
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
