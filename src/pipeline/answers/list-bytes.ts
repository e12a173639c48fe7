/** Whether bytes may hold the name of the method `tools/list`, however its characters are written: by SIMD, without decoding them. */
import {
  all,
  block,
  bytesOf,
  type CharCodes,
  classes,
  compileSearch,
  from,
  get,
  goOnBy,
  load,
  set,
  simd,
  vector,
} from '../../policy/detectors/simd.ts'

/** The end of the name, unless a character of it is escaped. */
const plainEnd = Buffer.from('/list"')
/** How the escape of a character of ASCII begins. */
const escaped = Buffer.from('\\u00')

const stretch = 64
const vectorBytes = 16
const vectors = Array.from({ length: stretch / vectorBytes }, (_, at) => at * vectorBytes)
/** Bytes that are loaded at a time. */
const windowBytes = 15_360

/** Where in sixteen bytes the first bytes of a text stand. */
const beginnings = (text: Buffer, bytes: number, offset: number): CharCodes =>
  [...text.subarray(0, bytes)].flatMap((code, at) => [
    ...[...load(offset + at), ...bytesOf(all(code)), ...simd(vector.equal)],
    ...(at === 0 ? [] : simd(vector.and)),
  ])

/** Whether one of both begins in a stretch. To compare more bytes costs more, and finds less that is none of them. */
const holdsEither = (bytes: number): CharCodes => [
  ...vectors.flatMap(offset => [
    ...[...beginnings(plainEnd, bytes, offset), ...beginnings(escaped, bytes, offset), ...simd(vector.or)],
    ...(offset === 0 ? [] : [...get(classes), ...simd(vector.or)]),
    ...set(classes),
  ]),
  ...[...get(classes), ...simd(vector.anyTrue)],
]

/** The first stretch from `from` on in which one of both begins; else `to`. */
const eitherCode = (): CharCodes => [
  ...[block.loop, block.empty, ...holdsEither(2), block.if, block.empty],
  ...[...holdsEither(escaped.length), block.if, block.empty, ...get(from), block.return, block.end, block.end],
  ...goOnBy(stretch),
]

const search = compileSearch(eitherCode)

/** Takes the same time for any bytes. */
export function mayList(piece: Buffer): boolean {
  if (search === undefined) return piece.includes(plainEnd) || piece.includes(escaped)
  for (let at = 0; at < piece.length; at += windowBytes) {
    const end = Math.min(piece.length, at + windowBytes)
    search.load(piece, at, end)
    if (search.find(0, end - at) < end - at) return true
  }
  return false
}
