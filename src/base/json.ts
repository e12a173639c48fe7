import { asError } from './as-error.ts'

/** Deeper documents are refused: nothing here needs any, and some readers recurse. */
const maxDepth = 200

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses a JSON text (RFC 8259) that has one meaning for every reader: UTF-8 without a byte order mark, no name twice in
 * one object, at most 200 levels.
 *
 * @param refused a name that no object may have
 * @returns the value, or the rest of a sentence on what is wrong
 */
export function parseStrictJson(
  bytes: Uint8Array,
  refused?: string,
): { readonly value: unknown } | { readonly problem: string } {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return { problem: 'is not UTF-8' }
  }
  try {
    const value: unknown = JSON.parse(text)
    const problem = ambiguityOf(text, refused)
    return problem === undefined ? { value } : { problem }
  } catch (error) {
    return { problem: `is not JSON: ${asError(error).message}` }
  }
}

/** JSON that readers understand differently although JSON.parse accepts it. `text` is valid JSON. */
function ambiguityOf(text: string, refused: string | undefined): string | undefined {
  /** Names seen in each open object; undefined for an open array. */
  const scopes: (Set<string> | undefined)[] = []
  let names: Set<string> | undefined
  for (let index = 0; index < text.length; index++) {
    const char = text[index]
    if (char === '"') {
      const end = endOfString(text, index)
      const problem = names && nameProblem(text.slice(index, end + 1), names, refused)
      if (problem !== undefined) return problem
      names = undefined
      index = end
    } else if (char === '{' || char === '[') {
      names = char === '{' ? new Set() : undefined
      if (scopes.push(names) > maxDepth) return `is nested deeper than ${maxDepth} levels`
    } else if (char === '}' || char === ']') scopes.pop()
    else if (char === ',') names = scopes.at(-1)
  }
  return undefined
}

/** Adds a name, given as a JSON string, to those of its object. */
function nameProblem(string: string, names: Set<string>, refused: string | undefined): string | undefined {
  const name: string = JSON.parse(string)
  if (names.has(name)) return `has the name ${string} twice in one object`
  if (name === refused) return `has the name ${string}`
  names.add(name)
  return undefined
}

/** Index of the quote that closes the string opened at `start`. */
function endOfString(text: string, start: number): number {
  let index = start + 1
  while (text[index] !== '"') index += text[index] === '\\' ? 2 : 1
  return index
}
