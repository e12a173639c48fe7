/** Personal data and passwords that show by a sign in the text. Each look takes a bounded number of characters. */

/** International telephone number: a plus sign and 8 to 15 digits (E.164). */
export function findPhone(text: string): boolean {
  for (let at = text.indexOf('+'); at >= 0; at = text.indexOf('+', at + 1)) {
    if (at > 0 && /\w/.test(text.charAt(at - 1))) continue
    if (/^\+[1-9](?:[ ().-]{0,2}\d){7,14}(?!\d)/.test(text.slice(at, at + 48))) return true
  }
  return false
}

export function findEmail(text: string): boolean {
  for (let at = text.indexOf('@'); at > 0; at = text.indexOf('@', at + 1)) {
    const before = text.slice(Math.max(0, at - 64), at)
    const after = text.slice(at + 1, at + 256)
    if (/[A-Za-z0-9_%+-]$/.test(before) && /^(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])/.test(after)) {
      return true
    }
  }
  return false
}

/** Account number whose checksum is right (ISO 13616). */
export function findIban(text: string): boolean {
  const start = /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?=[ A-Z0-9])/g
  for (const match of text.matchAll(start)) {
    const window = text.slice(match.index, match.index + 42)
    const run = /^[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}/.exec(window)?.[0] ?? ''
    if (isIbanPrefix(run.replaceAll(' ', ''))) return true
  }
  return false
}

/** Whether the text, or its beginning of some valid length, has the right checksum: spaced text may run on. */
function isIbanPrefix(text: string): boolean {
  for (let length = Math.min(34, text.length); length >= 15; length--) {
    if (ibanChecksum(text.slice(0, length)) === 1) return text.length === length || length >= 20
  }
  return false
}

function ibanChecksum(text: string): number {
  let remainder = 0
  for (const char of text.slice(4) + text.slice(0, 4)) {
    const value = Number.parseInt(char, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder
}

/** `https://user:password@host`. */
export function findUrlPassword(text: string): boolean {
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at + 3)) {
    if (/^[^\s/:@?#"'<>]{1,64}:[^\s/:@?#"'<>]{3,128}@[A-Za-z0-9[]/.test(text.slice(at + 3, at + 200))) return true
  }
  return false
}
