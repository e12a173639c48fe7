/**
 * Text that others wrote, for the eyes of people: characters that hide, reorder or move what is shown are written out.
 */

/**
 * Controls (C1 included), formatting marks (bidi, zero width, tags), variation selectors and fillers, spaces that are
 * not U+0020, line and paragraph separators, private and unassigned characters, lone surrogates, and Braille blank.
 */
const deceptive =
  /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2800\p{Default_Ignorable_Code_Point}]/gu

/** One line of text: such a character is shown as `\u{202e}`. */
export function escapeDeceptive(text: string): string {
  return text.replace(deceptive, char => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

/** Text of several lines: line ends and tabs stay. */
export function escapeLines(text: string): string {
  return text.replace(deceptive, char => (isLayout(char) ? char : escapeDeceptive(char)))
}

const isLayout = (char: string): boolean => char === '\n' || char === '\t'

/** The same for each text and each member name inside a JSON value. */
export function escapeDeceptiveIn<T>(value: T): T {
  // A text becomes a text, and everything else keeps its type.
  return escapedIn(value) as T
}

function escapedIn(value: unknown): unknown {
  if (typeof value === 'string') return escapeLines(value)
  if (Array.isArray(value)) return value.map(escapedIn)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [escapeDeceptive(name), escapedIn(inner)]))
}

/** JSON text of the same value in which such characters are JSON escapes (RFC 8259 section 7); line ends stay. */
export function printableJson(json: string): string {
  return json.replace(deceptive, char => (char === '\n' ? char : char.split('').map(unitEscape).join('')))
}

const unitEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
