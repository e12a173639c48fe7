/** Names and values of a form or a query; a repeated name gives a list. Own properties of an object without prototype. */
export type Pairs = Record<string, string | string[]>

/** The pairs of a query, read as browsers read them: what cannot be decoded becomes U+FFFD. */
export function readQuery(text: string): Pairs {
  return readPairs(text, part => decodePart(part) ?? repairPart(part)) as Pairs
}

/** The pairs of a form. A string is why it cannot be read: it has too many pairs, or can be read in two ways. */
export function readForm(text: string, mostPairs: number): Pairs | string {
  if (countPairs(text, mostPairs) > mostPairs) return `of more than ${mostPairs} values`
  return readPairs(text, decodePart) ?? 'not a valid form'
}

/** Pairs, counted no further than past `most`. */
function countPairs(text: string, most: number): number {
  let pairs = 1
  for (let at = text.indexOf('&'); at >= 0 && pairs <= most; at = text.indexOf('&', at + 1)) pairs++
  return pairs
}

/** Undefined when a name or value cannot be decoded. */
function readPairs(text: string, decode: (part: string) => string | undefined): Pairs | undefined {
  const pairs: Pairs = Object.create(null)
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf('&', start)
    const end = found < 0 ? text.length : found
    if (end > start) {
      const pair = text.slice(start, end)
      const equals = pair.indexOf('=')
      const name = decode(equals < 0 ? pair : pair.slice(0, equals))
      const value = equals < 0 ? '' : decode(pair.slice(equals + 1))
      if (name === undefined || value === undefined) return undefined
      addPair(pairs, name, value)
    }
    start = end + 1
  }
  return pairs
}

function addPair(pairs: Pairs, name: string, value: string): void {
  const known = pairs[name]
  if (known === undefined) pairs[name] = value
  else if (Array.isArray(known)) known.push(value)
  else pairs[name] = [known, value]
}

/** Plus signs are spaces, and what is percent-encoded is UTF-8; undefined when it is not. */
function decodePart(part: string): string | undefined {
  const spaced = part.includes('+') ? plusToSpace(part) : part
  try {
    const decoded = spaced.includes('%') ? decodeURIComponent(spaced) : spaced
    return decoded.includes('\ufffd') ? undefined : decoded
  } catch {
    return undefined
  }
}

/** By bytes: replaceAll takes a hundred times as long for a megabyte of plus signs. */
function plusToSpace(part: string): string {
  const bytes = Buffer.from(part)
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === 43) bytes[at] = 32
  return bytes.toString()
}

function repairPart(part: string): string {
  return new URLSearchParams(`x=${part}`).get('x') as string
}
