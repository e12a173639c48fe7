import { segmentClasses } from '../../base/segment-class.ts'
import type { RuleDocument } from '../language/format.ts'
import type { Effect } from '../language/model.ts'
import { documentOf } from './learn.ts'
import { type ProposedCondition, rulesOf } from './rules.ts'
import { literalSegment } from './segments.ts'
import { hasRawPath, type Shape } from './shape.ts'

/** What a drafted rule may leave open: `method`, `host`, `tool`, `fields`, or `segment N`, counted from 1. */
export type DraftPart = string

export interface DraftTerms {
  readonly name: string
  readonly effect: Effect
  readonly priority: number
  /** What it leaves open; nothing: exactly requests of the shape. */
  readonly open: ReadonlySet<DraftPart>
}

/** Conditions that a part opens. */
const fieldsOfPart: Readonly<Record<string, RegExp>> = {
  method: /^input\.method$/,
  host: /^input\.origin$/,
  tool: /^(?:mcp\.(?:tool|resource|prompt)|llm\.model)$/,
  fields: /(?:@keys|@size)$|^input\.queryString$|^graphql\.fields$/,
}

/** The parts of a rule for requests of the shape that can be opened. */
export function partsOf(shape: Shape): readonly DraftPart[] {
  const conditions = exactConditions(shape, '')
  const named = Object.keys(fieldsOfPart).filter(part =>
    conditions.some(({ field }) => fieldsOfPart[part]?.test(field)),
  )
  if (hasRawPath(shape)) return named
  return [...named, ...shape.segments.flatMap((segment, place) => (segment === '' ? [] : [`segment ${place + 1}`]))]
}

/** A rule for the requests of one agent that are like one. */
export function draftRule(shape: Shape, agentId: string, { open, effect, name, priority }: DraftTerms): RuleDocument {
  const path = `/${shape.segments.map((segment, place) => patternOf(segment, open.has(`segment ${place + 1}`))).join('/')}`
  const opened = [...open].flatMap(part => fieldsOfPart[part] ?? [])
  const conditions = exactConditions(shape, agentId)
    .filter(({ field }) => !opened.some(fields => fields.test(field)))
    .map(one => (one.field === 'input.path' ? { ...one, value: [path] } : one))
  return { ...documentOf({ effect: 'Allow', conditions }, { name, priority }), effect }
}

function exactConditions(shape: Shape, agentId: string): readonly ProposedCondition[] {
  const evidence = { count: 1, days: 1, first: 0, last: 0, approved: 0, fields: {} }
  const template = { ...shape, agentId, pattern: '/', values: [], evidence }
  return rulesOf([{ template, effect: 'Allow', cause: '' }]).flatMap(({ conditions }) => conditions)
}

/** Any value of the class of a segment; any segment where it has none. */
function patternOf(segment: string, isOpen: boolean): string {
  if (!isOpen) return literalSegment(segment)
  const name = segmentClasses.find(({ holds }) => holds(segment))?.name
  return name === undefined ? '*' : `{id:${name}}`
}
