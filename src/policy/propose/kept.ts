import { redactText } from '../../base/redact.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { segmentClasses } from '../../base/segment-class.ts'
import { personalDataSearch, secretSearch } from '../detectors/detectors.ts'
import { factsOf } from '../lint/examined.ts'
import type { DescribedRequest } from '../request/describe.ts'
import { findIn } from '../turns/evaluation.ts'
import { bodyValuesOf } from './field-reading.ts'
import type { BodyValues } from './field-values.ts'
import { type FoundShape, hasRawPath, moreThanRecorded, type Shape, shapeOfFacts } from './shape.ts'

/** A place in a path: a word, or any value of a class; `hex` and `key` with the length of the value, others with 0. */
export type KeptPlace = string | readonly [name: string, length: number]

/** A shape as it is stored: ids in its path are classes. */
export interface KeptShape extends Omit<Shape, 'segments'> {
  readonly path: readonly KeptPlace[]
  /** Why no rule can be made of it; null: one can. */
  readonly unfit: string | null
}

export interface KeptRequest {
  readonly shape: KeptShape
  /** For each place with a class, in their order, the values that may be kept: one or none. */
  readonly values: readonly (readonly string[])[]
  readonly fields: BodyValues
}

/** Stands where something secret was. */
const secretPlace: KeptPlace = ['secret', 0]
const ofOneLength = ['hex', 'key']
const plainValue = /^[\w.:/-]{1,64}$/
/** Longest shape that is stored as it is, characters of JSON. */
const maxShape = 8_192
const maxPlaces = 64

/**
 * What is recorded of a request. Nothing that a detector finds, and nothing after a name that stands for a secret, is in it.
 *
 * @param isWhole false when it had a body that is not known
 * @param read what was read of it before
 * @returns undefined when its origin has a secret: nothing of it may be kept
 */
export function keptOf(request: DescribedRequest, isWhole: boolean, read = factsOf(request)): KeptRequest | undefined {
  const { method, origin, path, readings = [] } = request.head
  if (findIn(secretSearch, origin) !== undefined) return undefined
  const found: FoundShape = isWhole ? shapeOfFacts(read, maxShape) : { unfit: 'a body that was not recorded' }
  const segments = path.slice(1).split('/')
  const places = segments.length > maxPlaces ? undefined : placesOf(segments)
  const head = { method, origin, path: places ?? [] }
  // A path with several readings counts twice: each of them is searched.
  if (places === undefined || JSON.stringify([found, places, ...readings.slice(0, 1)]).length > maxShape)
    return unfit({ ...head, path: [] }, moreThanRecorded.unfit)
  if (places.includes(secretPlace)) return unfit(head, 'a secret in the path')
  // Findings may lie across segments, and in another reading of the path.
  if ([segments, ...readings.map(one => one.slice(1).split('/'))].some(hasSecret))
    return unfit({ ...head, path: [secretPlace] }, 'a secret in the path')
  const values = segments.flatMap((segment, place) => (typeof places[place] === 'string' ? [] : [valuesOf(segment)]))
  if ('unfit' in found) return { ...unfit(head, found.unfit), values }
  // Ids are kept as classes, and not within a path.
  if (hasRawPath(found) && values.length > 0)
    return { ...unfit(head, 'a path with ids that servers read in different ways'), values }
  const { facts, names } = found
  // Of a map, the names of the members may be addresses of people.
  const texts = [...facts.map(([, value]) => value ?? ''), ...names.flatMap(([, all]) => all)].map(decoded)
  if (texts.some(text => isPersonal(text) || findIn(secretSearch, text) !== undefined))
    return { ...unfit(head, 'personal data, or a secret, in a name'), values }
  return { shape: { ...head, facts, names, unfit: null }, values, fields: bodyValuesOf(read, found) }
}

function unfit(head: Pick<KeptShape, 'method' | 'origin' | 'path'>, why: string): KeptRequest {
  const values = head.path.flatMap(place => (typeof place === 'string' ? [] : [[]]))
  return { shape: { ...head, facts: [], names: [], unfit: why }, values, fields: {} }
}

const hasSecret = (segments: readonly string[]): boolean =>
  placesOf(segments).includes(secretPlace) || findIn(secretSearch, segments.join('/')) !== undefined

function placesOf(segments: readonly string[]): readonly KeptPlace[] {
  return segments.map((segment, place) => placeOf(segment, segments[place - 1] ?? ''))
}

function placeOf(segment: string, before: string): KeptPlace {
  if (segment === '') return segment
  const found = classOf(segment)
  const texts = segment.includes('%') ? [segment, decoded(decoded(segment))] : [segment]
  if (texts.some(text => findIn(secretSearch, text) !== undefined || redactText(text) !== text)) return secretPlace
  if (typeof found === 'string') return texts.some(isPersonal) ? secretPlace : found
  return isSecretName(before) ? secretPlace : found
}

/** Clients write `@` in a path as `%40`. */
const decoded = (segment: string): string =>
  segment.replace(/%([2-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

const isPersonal = (text: string): boolean => findIn(personalDataSearch, text) !== undefined

function classOf(segment: string): KeptPlace {
  const found = segmentClasses.find(({ holds }) => holds(segment))
  if (found === undefined) return segment
  return [found.name, ofOneLength.includes(found.name) ? segment.length : 0]
}

function valuesOf(segment: string): readonly string[] {
  return plainValue.test(segment) && !isPersonal(segment) ? [segment] : []
}
