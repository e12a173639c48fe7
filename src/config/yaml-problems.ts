import type { ErrorCode, LineCounter, YAMLError } from 'yaml'

export interface Position {
  /** Both counted from 1. */
  readonly line: number
  readonly column: number
}

export interface YamlProblem extends Position {
  /** Says it fully; may repeat a piece of the text. */
  readonly message: string
  /** The kind of mistake; repeats nothing. */
  readonly kind: string
}

/** A mistake and where it stands, UTF-16 units from the beginning of the text. */
export interface Mistake {
  readonly offset: number
  readonly code: ErrorCode | 'UNKNOWN_ALIAS'
  readonly message: string
}

/** Finds places in a text, all of which were read before. */
export function positionsIn(lines: LineCounter): (offset: number) => Position {
  return offset => {
    const { line, col } = lines.linePos(offset)
    // An empty document has no lines yet.
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
}

/** Mistakes in a text that is well-formed: each stands for itself. */
const ofMeaning: readonly string[] = ['DUPLICATE_KEY', 'NON_STRING_KEY', 'TAG_RESOLVE_FAILED', 'UNKNOWN_ALIAS']

/** The mistakes up to the first one of syntax: after that, the parser guesses, and most of what it reports is not true. */
export function firstMistakes(errors: readonly YAMLError[]): readonly Mistake[] {
  const found = errors
    .map(({ code, message, pos: [offset] }): Mistake => ({ offset, code, message }))
    .sort((left, right) => left.offset - right.offset)
  const first = found.findIndex(({ code }) => !ofMeaning.includes(code))
  return first < 0 ? found : found.slice(0, first + 1)
}

/** A mistake in words, with the text to write where quotes are missing. */
export function describeMistake(text: string, mistake: Mistake): Pick<YamlProblem, 'message' | 'kind'> {
  const { code } = mistake
  const kind = code.toLowerCase().replaceAll('_', ' ')
  const unquoted = unquotedText(text, mistake)
  if (unquoted === undefined) return { message: messages[code] ?? mistake.message, kind }
  const written = quoted(unquoted)
  if (code === 'UNKNOWN_ALIAS')
    return { message: `unknown alias; text that begins with * must be in quotes: ${written}`, kind }
  if (code === 'TAG_RESOLVE_FAILED')
    return { message: `unknown tag; text that begins with ! must be in quotes: ${written}`, kind }
  return { message: `this text must be in quotes: ${written}`, kind: 'text that must be in quotes' }
}

const messages: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'a file must contain one document; split it at ---',
  NON_STRING_KEY: 'a key must be text; put text that begins with { or [ in quotes',
  BAD_DQ_ESCAPE: 'a backslash in double quotes must be written twice; in single quotes it stands for itself',
}

/** Longest text that a message repeats, UTF-16 units. */
const longest = 128

/** The text that was meant, where quotes are missing: `/repos/{owner}` in `{ value: /repos/{owner} }`. */
function unquotedText(text: string, { offset, code }: Mistake): string | undefined {
  const begin = atBeginning.includes(code) ? offset : beginningOf(text, offset, code)
  const found = begin === undefined ? '' : plainText(text.slice(begin, begin + longest + 1))
  return found === '' || found.length > longest || /^["']/.test(found) ? undefined : found
}

/** The parser reports these at the first character of the text. */
const atBeginning: readonly string[] = ['BAD_SCALAR_START', 'UNKNOWN_ALIAS', 'TAG_RESOLVE_FAILED']

/** Where text begins that goes on with a bracket, or behind one; undefined when the mistake is another one. */
function beginningOf(text: string, offset: number, code: Mistake['code']): number | undefined {
  if (code !== 'UNEXPECTED_TOKEN' && code !== 'MISSING_CHAR') return undefined
  const touches = /^\S[{[]|^[}\]]/.test(text.slice(offset - 1, offset + 1))
  if (!touches) return undefined
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1
  // Text begins behind a key, a comma, a bracket or a dash, each with a space.
  const [opening = ''] = /^(?:.*[:,{[-]\s+|\s*)/.exec(text.slice(lineStart, offset)) ?? []
  return lineStart + opening.length
}

/** Text up to a comma, a closing bracket that it did not open, a comment or the end of the line. */
function plainText(rest: string): string {
  let depth = 0
  for (let at = 0; at < rest.length; at++) {
    const char = rest[at]!
    if (char === '\n' || /^\s#/.test(rest.slice(at, at + 2))) return rest.slice(0, at).trim()
    if (char === '{' || char === '[') depth++
    else if (depth === 0 && /^(?:,\s|[}\]])/.test(rest.slice(at, at + 2))) return rest.slice(0, at).trim()
    else if (char === '}' || char === ']') depth--
  }
  return rest.trim()
}

/** In single quotes where double ones would need escapes. */
function quoted(text: string): string {
  return /["\\]/.test(text) ? `'${text.replaceAll("'", "''")}'` : `"${text}"`
}
