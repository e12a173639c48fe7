/**
 * Names of members. Readers of JSON differ in letter case: encoding/json of Go and System.Text.Json of ASP.NET take
 * `Amount` for `amount`, others do not. So a member is read only if every reader finds the same one.
 */
import { spend } from '../turns/evaluation.ts'
import { isRecord } from '../values/path.ts'
import { missing, unreadable } from '../values/truth.ts'

/** Characters that share their simple case folding with others although upper and lower case do not lead there. */
const irregular: ReadonlyMap<string, string> = new Map([
  // Java's equalsIgnoreCase takes the i of Turkish for that of other languages.
  ['\u0130', 'i'],
  ['\u1fd3', '\u0390'],
  ['\u1fe3', '\u03b0'],
  ['\ufb05', '\ufb06'],
])

/** A text by simple case folding (Unicode, CaseFolding.txt, C and S): readers that ignore case take equal ones for one. */
export function foldName(name: string): string {
  let folded = ''
  for (const char of name) folded += foldChar(char)
  return folded
}

function foldChar(char: string): string {
  const upper = char.toUpperCase()
  return irregular.get(char) ?? (upper.length === char.length ? upper : char).toLowerCase()
}

/** Characters beyond ASCII that fold to a letter of ASCII: the i of Turkish, the long s, and the sign for kelvin. */
const foldsToAscii = (code: number): boolean => code === 0x130 || code === 0x131 || code === 0x17f || code === 0x212a

/** Whether some reader takes a name for the other one, from which it differs. Folding keeps lengths. */
export function readsLike(name: string, other: string): boolean {
  if (name.length !== other.length || name === other) return false
  for (let at = 0; at < name.length; at++) {
    const one = name.charCodeAt(at)
    const two = other.charCodeAt(at)
    if (one !== two && !foldAlike(one, two) && !foldAlikeAt(name, other, at)) return false
  }
  return true
}

/** Whether two letters of ASCII differ in case alone. */
function foldAlike(one: number, two: number): boolean {
  const lower = one | 32
  return one < 128 && lower === (two | 32) && lower >= 97 && lower <= 122
}

function foldAlikeAt(name: string, other: string, at: number): boolean {
  const wide = Math.max(name.charCodeAt(at), other.charCodeAt(at))
  const narrow = Math.min(name.charCodeAt(at), other.charCodeAt(at))
  if (wide < 128 || (narrow < 128 && !foldsToAscii(wide))) return false
  const from = startOfCharacter(name, at)
  if (from !== startOfCharacter(other, at)) return false
  return foldChar(characterAt(name, from)) === foldChar(characterAt(other, from))
}

/** Where the character begins of which this is a unit. */
function startOfCharacter(text: string, at: number): number {
  const isSecond = (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800
  return isSecond ? at - 1 : at
}

const characterAt = (text: string, at: number): string => String.fromCodePoint(text.codePointAt(at) ?? 0)

/** Names that are compared in one step. */
const namesPerStep = 4
/** Listing the names of an object with more takes longer than to compare them: 1 ms for 10,000. */
const manyNames = 64
const listed = new WeakMap<object, readonly string[]>()

function namesOf(object: Record<string, unknown>): readonly string[] {
  const known = listed.get(object)
  if (known !== undefined) return known
  const names = Object.keys(object)
  if (names.length > manyNames) {
    listed.set(object, names)
    spend(names.length * stepsPerListedName)
  }
  return names
}

const stepsPerListedName = 4

/** A member of a JSON object, own properties only: `missing`, or `unreadable` where a reader may find another one. */
export function memberOf(value: unknown, key: string): unknown {
  if (!isRecord(value)) return value === unreadable ? unreadable : missing
  const names = namesOf(value)
  spend(Math.ceil(names.length / namesPerStep))
  for (let at = 0; at < names.length; at++) {
    const name = names[at]!
    if (name.length === key.length && name !== key && readsLike(name, key)) return unreadable
  }
  return Object.hasOwn(value, key) ? value[key] : missing
}

/** The values of all members that some reader takes for this one. */
export function membersLike(value: unknown, key: string): unknown[] {
  if (!isRecord(value)) return []
  const names = namesOf(value)
  spend(Math.ceil(names.length / namesPerStep))
  return names.filter(name => name === key || readsLike(name, key)).map(name => value[name])
}
