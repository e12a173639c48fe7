/** Words for numbers and times. */

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' })
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

export const timeText = (iso: string): string => clock.format(new Date(iso))

/** `4 min 10 s`, `2 h 5 min`. */
export function spanText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`
}

export function agoText(iso: string, now: number): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1_000)
  if (Math.abs(seconds) < 60) return relative.format(Math.min(0, seconds), 'second')
  if (Math.abs(seconds) < 3_600) return relative.format(Math.round(seconds / 60), 'minute')
  if (Math.abs(seconds) < 86_400) return relative.format(Math.round(seconds / 3_600), 'hour')
  return relative.format(Math.round(seconds / 86_400), 'day')
}

export function sizeText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`
  if (bytes < 1_048_576) return `${(bytes / 1_024).toFixed(1)} KiB`
  return `${(bytes / 1_048_576).toFixed(1)} MiB`
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/**
 * Kind of a text: `escaped` by the gateway; `exact`; a `value` within others, whose line ends must not look like the next
 * one; or of `bytes`, with those that are no UTF-8.
 */
export type TextKind = 'escaped' | 'exact' | 'value' | 'bytes'

/**
 * The characters that a reader does not see, or that change the order of others, as in `escapeDeceptive` of the gateway; and
 * combining marks behind four others, since a pile of them covers the lines above.
 */
const unseen =
  /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2800]|(?<=\p{M}{4})\p{M}/gv
/** The same, where line ends and tabs are layout. */
const unseenInLines =
  /[[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2800]--[\n\t]]|(?<=\p{M}{4})\p{M}/gv
/** How the gateway writes such a character. */
const escapes = /\\u\{[0-9a-f]{1,6}\}/g

export interface TextPart {
  readonly text: string
  readonly isEscape: boolean
}

/** Parts of a text: what is plain, and what must be made visible. */
export function partsOf(text: string, kind: TextKind = 'escaped'): readonly TextPart[] {
  const parts = partsBy(kind === 'value' ? unseen : unseenInLines, text, char => escapeOf(char, kind))
  if (kind !== 'escaped') return parts
  return parts.flatMap(part => (part.isEscape ? part : partsBy(escapes, part.text, found => found.slice(1))))
}

/** The same where no elements can be, as in a choice. */
export const visibleText = (text: string): string =>
  partsOf(text)
    .map(part => part.text)
    .join('')

/** Neighbours are one part: a text may have nothing else, and each part is an element of the page. */
function partsBy(form: RegExp, text: string, write: (char: string) => string): readonly TextPart[] {
  const parts: TextPart[] = []
  let run: string[] = []
  let from = 0
  const take = (to: number) => {
    if (to === from) return
    if (run.length > 0) parts.push({ text: run.join(' '), isEscape: true })
    if (to > from) parts.push({ text: text.slice(from, to), isEscape: false })
    run = []
  }
  for (const { 0: char, index } of text.matchAll(form)) {
    take(index)
    run.push(write(char))
    from = index + char.length
  }
  if (from < text.length) take(text.length)
  else if (run.length > 0) parts.push({ text: run.join(' '), isEscape: true })
  return parts
}

function escapeOf(char: string, kind: TextKind): string {
  const code = char.codePointAt(0) ?? 0
  if (kind === 'bytes' && code >= 0xdc00 && code < 0xdd00) return `x{${(code - 0xdc00).toString(16).padStart(2, '0')}}`
  // The line still ends there.
  return `u{${code.toString(16)}}${char === '\n' ? '\n' : ''}`
}
