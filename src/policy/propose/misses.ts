import { type ExampleRequest, exampleOf } from './example.ts'
import type { BodyValues } from './field-values.ts'
import type { Shape } from './shape.ts'

/** Requests that are nearly of a shape: with another method, another word in the path, and a further name. */
export function missesOf(shape: Shape, fields: BodyValues = {}): readonly ExampleRequest[] {
  const others = [otherMethod(shape), otherWord(shape), furtherName(shape)]
  return others.filter(other => other !== undefined).map(other => exampleOf(other, fields))
}

const otherMethod = (shape: Shape): Shape => ({ ...shape, method: shape.method === 'PATCH' ? 'PUT' : 'PATCH' })

/** The last word: ids of one class are not told apart. */
function otherWord(shape: Shape): Shape | undefined {
  const place = shape.segments.findLastIndex(segment => /^[a-z][a-z_-]*$/i.test(segment))
  if (place < 0) return undefined
  return { ...shape, segments: shape.segments.with(place, `${shape.segments[place]}x`) }
}

function furtherName(shape: Shape): Shape | undefined {
  const [first, ...rest] = shape.names.toReversed()
  if (first === undefined || first[0] === 'graphql.fields') return undefined
  const [field, names] = first
  return { ...shape, names: [...rest.toReversed(), [field, [...names, 'further_name'].sort()]] }
}
