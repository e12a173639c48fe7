import { requestOf } from './example.ts'
import type { BodyValues } from './field-values.ts'
import type { KeptPlace, KeptShape } from './kept.ts'
import type { ShapeOutcome } from './outcome.ts'
import { classSegment, fewestValues } from './segments.ts'
import type { Shape } from './shape.ts'
import { type RecordedRequest, whyIneligible } from './template.ts'

/** Requests that were counted by shape and outcome. */
export interface CountedShape {
  readonly agentId: string
  readonly shape: KeptShape
  readonly outcome: ShapeOutcome
  readonly values: readonly (readonly string[])[]
  readonly fields: BodyValues
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
  readonly days: readonly number[]
}

/** The same as examples from which rules are made, or why none is. */
export type ReadShape =
  | { readonly requests: readonly RecordedRequest[]; readonly ineligible: string | undefined }
  | { readonly unfit: string }

/** @param isExact keeps every id: then only a shape with few of them, in one place, is of use */
export function readShape(counted: CountedShape, isExact: boolean): ReadShape {
  const { shape, outcome, agentId, fields, days, firstAt, lastAt: at } = counted
  if (shape.unfit !== null) return { unfit: shape.unfit }
  const paths = pathsOf(shape.path, counted.values, isExact)
  if ('unfit' in paths) return paths
  const requests: RecordedRequest[] = []
  for (const [index, { segments, example }] of paths.all.entries()) {
    const { method, origin, facts, names } = shape
    const one: Shape = { method, origin, segments: example, facts, names }
    const request = requestOf(one, { id: agentId }, fields)
    if (request === undefined) return { unfit: 'a shape that no example shows' }
    const { effect, status, verdict, signal, policy, rule } = outcome
    // Ids of one place share the count.
    const count = index === 0 ? counted.count : 0
    requests.push({
      ...{ agentId, request, shape: one, at, effect, verdict },
      ...{ status: status * 100, signals: signal === null ? [] : [signal] },
      counted: { count, days, firstAt, path: shape.path, segments, policy, rule, fields },
    })
  }
  return { requests, ineligible: requests[0] && whyIneligible(requests[0]) }
}

interface OnePath {
  readonly segments: readonly string[]
  readonly example: readonly string[]
}

/** Ids of at most one place are told apart: which of them came with which of another place is not known. */
function pathsOf(
  path: readonly KeptPlace[],
  values: readonly (readonly string[])[],
  isExact: boolean,
): { readonly all: readonly OnePath[] } | { readonly unfit: string } {
  let all: readonly OnePath[] = [{ segments: [], example: [] }]
  let place = 0
  for (const [at, found] of path.entries()) {
    const kept = typeof found === 'string' ? [found] : (values[place++] ?? [])
    const [first] = kept
    if (first === undefined) return { unfit: 'an id that was not kept' }
    if (typeof found !== 'string' && at > 0 && kept.length >= fewestValues && !isExact) {
      const segment = classSegment(found[0])
      all = all.map(({ segments, example }) => ({ segments: [...segments, segment], example: [...example, first] }))
      continue
    }
    if (kept.length > 1 && all.length > 1) return { unfit: 'few ids in several places' }
    if (typeof found !== 'string' && kept.length >= maxKept) return { unfit: 'more ids than were kept' }
    all = all.flatMap(({ segments, example }) =>
      kept.map(value => ({ segments: [...segments, value], example: [...example, value] })),
    )
  }
  return { all }
}

/** As many ids of one place are kept; there may have been more. */
const maxKept = 8
