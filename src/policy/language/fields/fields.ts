import { Memo } from '../../../base/memo.ts'
import { didYouMean } from '../../../base/nearest.ts'
import type { Facts } from '../../request/facts.ts'
import { memberOf } from '../../request/names.ts'
import { charge, once, spend } from '../../turns/evaluation.ts'
import {
  follow,
  isLast,
  type MemberReader,
  Messages,
  ownMember,
  type PathStep,
  parsePath,
  Several,
} from '../../values/path.ts'
import { missing, unreadable } from '../../values/truth.ts'
import { type FieldKind, fieldKinds } from './field-table.ts'
import type { Zone } from './zone.ts'

/** A field path that was understood. */
export interface Field {
  readonly text: string
  readonly kind: FieldKind
  /** Type of the value at the end of the path; `.@size` is a number, and `.@type` and `.@keys` are text, for every value. */
  readonly type: FieldKind['type']
  /** Whether `[*]` occurs, so that one value stands for each element. */
  readonly several: boolean
  /** Whether the value is the names of an object. */
  readonly ofNames: boolean
  /** Whether the value is a list when the agent sends the field more than once. */
  readonly repeats: boolean
  /** Value of a plain string of the head, which is always present; the fast path. */
  readonly plain: ((facts: Facts) => string) | undefined
  /** A JSON value, a list, Several, `missing`, `unknown` or `unreadable`. */
  readonly read: (facts: Facts, zone: Zone) => unknown
  /** Lower-case header name of `input.headers.NAME`. */
  readonly header: string | undefined
}

/** Policies name the same few fields again and again. */
const parsed = new Memo<string, Field>(10_000)

/** The field that a path names; a string is what is wrong with it. */
export function parseField(text: string): Field | string {
  const known = parsed.get(text)
  if (known !== undefined) return known
  const field = readField(text)
  if (typeof field === 'string') return field
  parsed.set(text, field)
  return field
}

function readField(text: string): Field | string {
  const steps = parsePath(text)
  if (typeof steps === 'string') return steps
  const base = baseOf(steps)
  const kind = fieldKinds.get(base)
  if (kind === undefined) return unknownField(text, base)
  const rest = steps.slice(base.split('.').length)
  const wrong = checkSteps(kind, base, rest)
  return wrong ?? createField(text, kind, rest)
}

/** `input.body` of `input.body.a`, `input.bodyInfo.size`, `input.method`: the longest known beginning of two or three keys. */
function baseOf(steps: readonly PathStep[]): string {
  const keys: string[] = []
  for (const step of steps.slice(0, 3)) {
    if (step.kind !== 'key') break
    keys.push(step.key)
  }
  const three = keys.join('.')
  return keys.length === 3 && fieldKinds.has(three) ? three : keys.slice(0, 2).join('.')
}

function unknownField(text: string, base: string): string {
  return `unknown field ${JSON.stringify(text)}${didYouMean(base, fieldKinds.keys())}`
}

function checkSteps(kind: FieldKind, base: string, rest: readonly PathStep[]): string | undefined {
  const last = rest.at(-1)
  const inner = last !== undefined && isLast(last) ? rest.slice(0, -1) : rest
  if (inner.some(isLast)) return '@size, @type and @keys must end a field path'
  if (last?.kind === 'keys' && kind.below !== 'any') return `${base} must not have @keys: it has no objects`
  if (kind.below === 'none' && inner.length > 0) return `${base} must not have a path below it`
  if (kind.below === 'list' && !isListAccess(inner)) return `${base} is a list: use [0] or [*]`
  if (kind.below === 'name') return checkName(base, inner)
  return undefined
}

function isListAccess(steps: readonly PathStep[]): boolean {
  return steps.length === 0 || (steps.length === 1 && steps[0]!.kind !== 'key')
}

function checkName(base: string, steps: readonly PathStep[]): string | undefined {
  if (steps[0]?.kind !== 'key') return `${base} needs a name: ${base}.NAME`
  const list = steps.slice(1)
  if (isListAccess(list)) return undefined
  return `below ${base}.NAME only [0], [*], @size and @type; write a name with dots as ${base}["a.b"]`
}

function createField(text: string, kind: FieldKind, steps: readonly PathStep[]): Field {
  const last = steps.at(-1)?.kind
  const first = steps[0]
  const name = first?.kind === 'key' ? first.key : ''
  const several = kind.several === true || steps.some(step => step.kind === 'each' || step.kind === 'keys')
  return {
    text,
    kind,
    type: last === 'size' ? 'number' : last === 'type' || last === 'keys' ? 'string' : kind.type,
    several,
    ofNames: last === 'keys',
    repeats: kind.repeats === true && steps.length === (kind.below === 'name' ? 1 : 0),
    plain: steps.length === 0 ? kind.plain : undefined,
    read: kind.header === true ? headerReader(name.toLowerCase(), steps.slice(1)) : reader(kind, steps),
    header: kind.header === true ? name.toLowerCase() : undefined,
  }
}

function headerReader(name: string, steps: readonly PathStep[]): Field['read'] {
  if (steps.length === 0) return facts => facts.header(name)
  return facts => {
    const value = facts.header(name)
    return value === missing ? missing : follow(value, steps, ownMember)
  }
}

function reader(kind: FieldKind, steps: readonly PathStep[]): Field['read'] {
  const read = valueReader(kind, steps)
  if (kind.phase !== 'body') return read
  const last = steps.at(-1)
  return remembered(last !== undefined && isLast(last) ? read : exactly(read))
}

function valueReader(kind: FieldKind, steps: readonly PathStep[]): Field['read'] {
  const [first] = steps
  if (first === undefined) return kind.read
  const member = kind.exactNames === true ? ownMember : memberOf
  const { member: readMember, names } = kind
  if (names !== undefined && first.kind === 'keys') return names
  if (readMember === undefined || first.kind !== 'key')
    return (facts, zone) => below(kind.read(facts, zone), steps, member)
  const { key } = first
  const rest = steps.slice(1)
  return facts => below(readMember(facts, key), rest, member)
}

/** Steps that finding one of several values takes. */
const stepsPerValue = 4

/** Read once in an evaluation that is made in turns. */
function remembered(read: Field['read']): Field['read'] {
  const counted: Field['read'] = (facts, zone) => {
    charge(0)
    const value = read(facts, zone)
    if (value instanceof Several) spend(value.items.length * stepsPerValue)
    return value
  }
  return (facts, zone) => once(counted, () => counted(facts, zone))
}

/** Numbers of a body are doubles until a rule reads one; if some of them may be rounded, it is read again then. */
function exactly(read: Field['read']): Field['read'] {
  return (facts, zone) => {
    const value = read(facts, zone)
    return holdsNumber(value) && facts.body?.makeExact() === true ? read(facts, zone) : value
  }
}

/** Whether a number is among what operators look at: the value, the elements of a list, those of several values. */
function holdsNumber(value: unknown): boolean {
  if (typeof value === 'number') return true
  if (value instanceof Several) return value.items.some(holdsNumber)
  return Array.isArray(value) && value.some(element => typeof element === 'number')
}

function below(value: unknown, steps: readonly PathStep[], member: MemberReader): unknown {
  if (typeof value === 'symbol') return value
  if (value instanceof Messages) return new Messages(value.messages.map(message => below(message, steps, member)))
  if (!(value instanceof Several)) return follow(value, steps, member)
  const found = value.items.map(item => (typeof item === 'symbol' ? item : follow(item, steps, member)))
  return new Several(found.flatMap(item => (item instanceof Several ? item.items : [item])))
}

/** A field that holds a credential: nothing but its presence is given away. */
export function hideValue(field: Field): Field {
  return { ...field, read: (facts, zone) => (field.read(facts, zone) === missing ? missing : unreadable) }
}
