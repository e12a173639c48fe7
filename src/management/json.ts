/** Deeper documents are refused: no operation takes any, and those who read a document may recurse. */
const MAX_DEPTH = 200

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Parses a JSON text (RFC 8259) strictly: UTF-8 without a byte order mark, no name twice in one object, at most
 * 200 levels.
 *
 * @returns the value, or one sentence on what is wrong
 */
export function parseJson(bytes: Uint8Array): { readonly value: unknown } | { readonly problem: string } {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return { problem: 'is not UTF-8' }
  }
  try {
    const value: unknown = JSON.parse(text)
    const problem = findAmbiguity(text)
    return problem === undefined ? { value } : { problem }
  } catch (error) {
    return { problem: `is not JSON: ${(error as SyntaxError).message}` }
  }
}

/**
 * Finds what JSON.parse lets pass: a name given twice, of which two parsers may take different ones, and depth.
 * `text` is known to be JSON, so that this looks at nothing but brackets, commas and strings.
 */
function findAmbiguity(text: string): string | undefined {
  /** Names seen in each open object; undefined for an open array. */
  const scopes: (Set<string> | undefined)[] = []
  let nameNext = false
  for (let index = 0; index < text.length; index++) {
    const char = text[index]
    if (char === '{' || char === '[') {
      nameNext = char === '{'
      if (scopes.push(nameNext ? new Set() : undefined) > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels`
    } else if (char === '}' || char === ']') {
      scopes.pop()
    } else if (char === ',') {
      nameNext = scopes.at(-1) !== undefined
    } else if (char === '"') {
      const end = endOfString(text, index)
      const name = text.slice(index, end + 1)
      if (nameNext && !isNew(name, scopes.at(-1))) return `has the name ${name} twice in one object`
      nameNext = false
      index = end
    }
  }
  return undefined
}

/** Adds a name, given as a JSON string, to those of its object; false when it was there. */
function isNew(string: string, names: Set<string> | undefined): boolean {
  const name = JSON.parse(string) as string
  if (names?.has(name)) return false
  names?.add(name)
  return true
}

/** Index of the quote that closes the string opened at `start`. */
function endOfString(text: string, start: number): number {
  let index = start + 1
  while (text[index] !== '"') index += text[index] === '\\' ? 2 : 1
  return index
}
