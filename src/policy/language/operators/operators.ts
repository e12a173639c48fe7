import { isRecord, typeName } from '../../values/path.ts'
import { False, missing, True, type Truth } from '../../values/truth.ts'
import { ConditionError } from '../problems.ts'
import * as tests from './element-tests.ts'
import { buildBetween, buildOrdering } from './ordering.ts'
import { type Operand, readWords } from './values.ts'

/** An operator by one of its names; negated ones are the exact logical negation of their positive form. */
export interface Operator {
  /** Canonical name, `notIn`. */
  readonly name: string
  readonly negated: boolean
  readonly form: PositiveForm
}

export interface PositiveForm {
  readonly name: string
  /** element: asked of each value of a list; whole: of the value as it is, also missing; list: of all values at once. */
  readonly asks: 'element' | 'whole' | 'list'
  /** Which fields it suits; ordering: those that can hold a number. */
  readonly suits: 'any' | 'ordering' | 'text'
  /** Whether the author may write the value as a list. */
  readonly takesList: boolean
  /** Value taken when the author wrote none. */
  readonly standard?: string
  readonly build: (operand: Operand) => tests.ElementTest
}

function element(name: string, build: PositiveForm['build'], suits: PositiveForm['suits'] = 'any'): PositiveForm {
  return { name, asks: 'element', suits, takesList: false, build }
}

function ofList(form: PositiveForm): PositiveForm {
  return { ...form, takesList: true }
}

/** A test whose value states the wanted result; `isNegation` reads it. */
function flag(name: string, holds: (value: unknown) => boolean): PositiveForm {
  const build = ({ value: wanted }: Operand) => {
    if (!/^(?:true|false)$/i.test(wanted)) throw new ConditionError('the value must be "true" or "false"')
    return (value: unknown): Truth => (holds(value) ? True : False)
  }
  return { name, asks: 'whole', suits: 'any', takesList: false, standard: 'true', build }
}

/** Whether the condition is the negation of its positive form: `notIn`, `exists "false"`, not `notExists "false"`. */
export function isNegation({ form, negated }: Operator, value: string): boolean {
  const unwanted = form.standard !== undefined && value.toLowerCase() === 'false'
  return negated !== unwanted
}

function isEmpty(value: unknown): boolean {
  if (value === missing || value === null || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isRecord(value) && Object.keys(value).length === 0
}

const typeNames = ['string', 'number', 'boolean', 'null', 'array', 'object']

function buildTypeIs(operand: Operand): tests.ElementTest {
  const words = readWords(operand.value)
  const names = words.map(word => word.toLowerCase())
  const wrong = names.find(name => !typeNames.includes(name))
  if (wrong !== undefined) throw new ConditionError(`${JSON.stringify(wrong)} must be one of ${typeNames.join(', ')}`)
  return value => (value !== missing && names.includes(typeName(value)) ? True : False)
}

const ordering = (name: 'gt' | 'gte' | 'lt' | 'lte') =>
  element(name, operand => buildOrdering(name, operand), 'ordering')
const piece = (name: tests.PieceName) => element(name, operand => tests.buildPiece(name, operand), 'text')

const forms = {
  eq: element('eq', tests.buildEq),
  in: ofList(element('in', tests.buildIn)),
  hasAll: { name: 'hasAll', asks: 'list', suits: 'any', takesList: true, build: tests.buildHasAll },
  gt: ordering('gt'),
  gte: ordering('gte'),
  lt: ordering('lt'),
  lte: ordering('lte'),
  between: ofList(element('between', buildBetween, 'ordering')),
  startsWith: piece('startsWith'),
  endsWith: piece('endsWith'),
  contains: piece('contains'),
  like: element('like', tests.buildLike, 'text'),
  pathMatches: ofList(element('pathMatches', tests.buildPathMatches)),
  hostMatches: ofList(element('hostMatches', tests.buildHostMatches, 'text')),
  matches: element('matches', tests.buildMatches, 'text'),
  ipIn: ofList(element('ipIn', tests.buildIpIn, 'text')),
  exists: flag('exists', value => value !== missing),
  isEmpty: flag('isEmpty', isEmpty),
  typeIs: { name: 'typeIs', asks: 'whole', suits: 'any', takesList: true, build: buildTypeIs },
  detects: ofList(element('detects', tests.buildDetects, 'text')),
} as const satisfies Record<string, PositiveForm>

/** Canonical name, positive form, further names. A name other than that of its form is the negation. */
export const operatorTable: readonly (readonly [name: string, form: PositiveForm, ...aliases: string[]])[] = [
  ['eq', forms.eq, 'equals', '=='],
  ['ne', forms.eq, '!=', 'neq'],
  ['in', forms.in],
  ['notIn', forms.in, 'nin'],
  ['hasAll', forms.hasAll],
  ['gt', forms.gt, '>'],
  ['gte', forms.gte, '>=', 'ge'],
  ['lt', forms.lt, '<'],
  ['lte', forms.lte, '<=', 'le'],
  ['between', forms.between],
  ['startsWith', forms.startsWith],
  ['notStartsWith', forms.startsWith],
  ['endsWith', forms.endsWith],
  ['notEndsWith', forms.endsWith],
  ['contains', forms.contains],
  ['notContains', forms.contains],
  ['like', forms.like],
  ['notLike', forms.like],
  ['pathMatches', forms.pathMatches],
  ['notPathMatches', forms.pathMatches],
  ['hostMatches', forms.hostMatches],
  ['notHostMatches', forms.hostMatches],
  ['matches', forms.matches, 'regex'],
  ['notMatches', forms.matches],
  ['ipIn', forms.ipIn],
  ['notIpIn', forms.ipIn],
  ['exists', forms.exists],
  ['notExists', forms.exists],
  ['isEmpty', forms.isEmpty],
  ['typeIs', forms.typeIs],
  ['detects', forms.detects],
]

const byName = new Map<string, Operator>()
for (const [name, form, ...aliases] of operatorTable) {
  const operator: Operator = { name, negated: name !== form.name, form }
  for (const spelled of [name, ...aliases]) byName.set(spelled.toLowerCase(), operator)
}

/** Canonical names, for "did you mean". */
export const operatorNames: readonly string[] = operatorTable.map(([name]) => name)

/** The operator of that name, any letter case. */
export function findOperator(name: string): Operator | undefined {
  return byName.get(name.toLowerCase())
}
