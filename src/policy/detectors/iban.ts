import { upperDigits } from './bytes.ts'

/** Remainder by 97 after one more character, for each remainder and each of the 36 characters. */
const nextRemainder = new Uint8Array(97 * 64)
for (let remainder = 0; remainder < 97; remainder++) {
  for (let value = 0; value < 36; value++) {
    nextRemainder[remainder * 64 + value] = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
}

/** Remainder by 97 of a remainder with six digits behind it. */
const millions = Uint8Array.from({ length: 97 }, (_, remainder) => (remainder * 1_000_000) % 97)

const valueOfCharacter = (code: number) => (code < 58 ? code - 48 : code - 55)

const shortest = 15
const longest = 34
/** Maximum of characters that are looked at, spaces included. */
const maxCharacters = 42
/** Text may follow an account number of this length; a shorter one must end with the text. */
const plainlyLong = 20

/**
 * Whether two letters and two digits begin an account number whose checksum is right (ISO 13616), or its beginning of
 * some valid length is: text in groups may run on. The checksum is carried on from one character to the next: what is
 * behind the first four comes first, and these then make six digits.
 */
export function isIban(bytes: Uint8Array, at: number): boolean {
  const letters = valueOfCharacter(bytes[at]!) * 100 + valueOfCharacter(bytes[at + 1]!)
  const digits = valueOfCharacter(bytes[at + 2]!) * 10 + valueOfCharacter(bytes[at + 3]!)
  const wanted = (98 - ((letters * 100 + digits) % 97)) % 97
  const end = Math.min(bytes.length, at + maxCharacters)
  let length = 4
  let right = 0
  let remainder = 0
  for (let place = at + 4; place < end && length < longest; place++) {
    if (bytes[place] === 32 && place + 1 < end) place++
    const code = bytes[place]!
    if (upperDigits[code] === 0) break
    length++
    remainder = nextRemainder[remainder * 64 + valueOfCharacter(code)]!
    if (length >= shortest && millions[remainder] === wanted) right = length
  }
  return right > 0 && (right === length || right >= plainlyLong)
}
