const list = Buffer.from('list"')
const escapedSlash = Buffer.from('\\u002')
const slash = 0x2f
const backslash = 0x5c
const digit = 0x32

/** After so many slashes a search of the text is cheaper: a call for each takes as long as 100 bytes of the text. */
const mostSlashes = 1_000
/** Texts have the digit less often than backslashes. Bodies of numbers have it more often. */
const mostDigits = 64

/**
 * Whether a body may contain `/list"`, plain or with escapes. Never false when it does. A body of many slashes always may:
 * a search for each way of writing would take 5 ms for a MiB of them, this takes at most one of those.
 */
export function mayList(body: Buffer): boolean {
  let at = body.indexOf(slash)
  for (let seen = 1; at >= 0; seen++) {
    if (seen > mostSlashes || mayListBehind(body, at + 1)) return true
    at = body.indexOf(slash, at + 1)
  }
  return hasEscapedSlash(body)
}

/** Whether `list"` stands here, or the beginning of it and then an escape. */
function mayListBehind(body: Buffer, from: number): boolean {
  const length = lengthInCommon(body, from, list)
  return length === list.length || body[from + length] === backslash
}

function hasEscapedSlash(body: Buffer): boolean {
  let at = body.indexOf(digit)
  for (let seen = 1; at >= 0; seen++) {
    const start = at + 1 - escapedSlash.length
    if (seen > mostDigits) return body.indexOf(escapedSlash, Math.max(0, start)) >= 0
    if (lengthInCommon(body, start, escapedSlash) === escapedSlash.length) return true
    at = body.indexOf(digit, at + 1)
  }
  return false
}

function lengthInCommon(body: Buffer, from: number, text: Buffer): number {
  let length = 0
  while (length < text.length && body[from + length] === text[length]) length++
  return length
}
