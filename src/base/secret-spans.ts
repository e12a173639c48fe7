/** Where secrets stand in a text that is shown as it is: by the name before them, or by their form. */
import { nameIn } from './redact.ts'
import { isSecretName } from './secret-names.ts'

/** Characters, or bytes, from `from` on and before `to`. */
export interface SecretSpan {
  readonly detector: string
  readonly from: number
  readonly to: number
}

/** Characters that are searched at a time, and how many of the next ones with them. */
const pieceLength = 16_384
const overlap = 2_048
/** Longest name before an equals sign, characters as they are encoded. */
const longestName = 128

const member = /"([^"\\]{1,64})"\s{0,8}:\s{0,8}(?:"((?:[^"\\]|\\.)*)"?|([\w.+-]+))/dg
const part = /\bform-data; ?name="([^"\r\n]{1,64})"[^\r\n]{0,256}\r?\n(?:[^\r\n]{1,256}\r?\n){0,8}\r?\n([^\r\n]+)/dgi
const element = /<([\w:.-]{1,64})(?:\s[^<>]{0,256})?>([^<>]+)<\//dg
const wordEnd = /[&;?#,\s"'<>(){}|]|$/g
const startOfWord = /[^&;?#,\s"'<>(){}|]*$/
const gatewayKey = /\b(agw_[\w-]{8,})/dg
const bearer = /\b(?:bearer|dpop)(?: |%20|\+)([\w.~+/=-]{8,})/dgi

const byName = 'secret-name'

/**
 * Yields between pieces, so that others are served in between. Linear in the length.
 *
 * @param max places that are looked for
 */
export function* secretPlaces(text: string, max: number): Generator<void, readonly SecretSpan[], void> {
  const places: SecretSpan[] = []
  for (let at = 0; at < text.length && places.length < max; at += pieceLength) {
    if (at > 0) yield
    for (const { detector, from, to } of placesIn(text.slice(at, at + pieceLength + overlap))) {
      // What begins behind the piece is found with the next one.
      if (from < pieceLength) places.push({ detector, from: at + from, to: at + to })
    }
  }
  return places.slice(0, max)
}

function placesIn(text: string): readonly SecretSpan[] {
  const named = [member, part, element].flatMap(form =>
    [...text.matchAll(form)].flatMap(found =>
      isSecretName(found[1] ?? '') ? placeOf(byName, found.indices?.[2] ?? found.indices?.[3]) : [],
    ),
  )
  const formed = [...text.matchAll(gatewayKey)].flatMap(found => placeOf('gateway-key', found.indices?.[1]))
  const tokens = [...text.matchAll(bearer)].flatMap(found => placeOf('bearer-token', found.indices?.[1]))
  return [...named, ...pairsIn(text), ...formed, ...tokens]
}

/** Values behind the first equals sign of a word. Most words have none, so these are looked for, and not words. */
function pairsIn(text: string): readonly SecretSpan[] {
  const places: SecretSpan[] = []
  let end = 0
  for (let equals = text.indexOf('='); equals >= 0; equals = text.indexOf('=', end)) {
    const [name = ''] = startOfWord.exec(text.slice(Math.max(end, equals - longestName), equals)) ?? []
    wordEnd.lastIndex = equals
    end = wordEnd.exec(text)?.index ?? text.length
    if (name !== '' && isSecretName(nameIn(`${name}=`))) places.push(...placeOf(byName, [equals + 1, end]))
  }
  return places
}

function placeOf(detector: string, range: readonly [number, number] | undefined): readonly SecretSpan[] {
  return range === undefined || range[0] === range[1] ? [] : [{ detector, from: range[0], to: range[1] }]
}
