import { LongNumber } from './numbers.ts'
import { missing } from './truth.ts'

/** One step of a field path after its base: `.key`, `[0]`, `[*]`, `.@size`, `.@type`, `.@keys`. */
export type PathStep =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'each' }
  | { readonly kind: 'size' }
  | { readonly kind: 'type' }
  | { readonly kind: 'keys' }

/** The values of `[*]`: one entry for each element, `missing` or `unreadable` where the rest of the path leads nowhere. */
export class Several {
  readonly items: readonly unknown[]
  #leaves: readonly unknown[] | undefined

  constructor(items: readonly unknown[]) {
    this.items = items
  }

  /** A list at the end of the path stands for its entries, an empty one for a missing entry. */
  get leaves(): readonly unknown[] {
    this.#leaves ??= this.items.some(Array.isArray) ? this.items.flatMap(entriesOf) : this.items
    return this.#leaves
  }
}

/** The values of the messages of a batch. A message with several values has them here, and all stand among the items. */
export class Messages extends Several {
  readonly messages: readonly unknown[]

  constructor(messages: readonly unknown[]) {
    super(messages.flatMap(value => (value instanceof Several ? value.items : [value])))
    this.messages = messages
  }
}

function entriesOf(item: unknown): readonly unknown[] {
  if (!Array.isArray(item)) return [item]
  return item.length > 0 ? item : [missing]
}

const maxLength = 512
const maxSteps = 32
const nameStep = /\.?([^.[\]"'\s]+)/y
const bracketStep = /\[(?:(\*)|(-?\d{1,6})|("(?:[^"\\]|\\.)*"))\]/y

/** Splits `input.body.a[0]["odd.key"].@size` into its steps; a string is what is wrong with it. */
export function parsePath(text: string): readonly PathStep[] | string {
  if (text.length > maxLength) return `a field path must have at most ${maxLength} characters`
  const steps: PathStep[] = []
  let at = 0
  while (at < text.length) {
    const found = readStep(text, at)
    if (found === undefined) return `bad field path at character ${at + 1}`
    if (typeof found === 'string') return found
    steps.push(found.step)
    at = found.end
  }
  if (steps.length > maxSteps) return `a field path must have at most ${maxSteps} steps`
  return steps
}

/** The step at this place; a string is what is wrong with its name. */
function readStep(text: string, at: number): { step: PathStep; end: number } | string | undefined {
  const bracket = text[at] === '['
  if (!bracket && at > 0 !== (text[at] === '.')) return undefined
  const pattern = bracket ? bracketStep : nameStep
  pattern.lastIndex = at
  const match = pattern.exec(text)
  if (match === null) return undefined
  const step = bracket ? bracketed(match) : named(match[1]!)
  return typeof step === 'object' ? { step, end: pattern.lastIndex } : step
}

/** Steps of other languages would be names here that no request has: the rule would silently never hold. */
function named(name: string): PathStep | string {
  const kind = lastSteps.get(name)
  if (kind !== undefined) return { kind }
  const instead = `all of a body is input.bodyText, a member of this name [${JSON.stringify(name)}]`
  if (name.startsWith('@')) return `a field path ends with @size, @type or @keys, not with ${name}: ${instead}`
  if (name.includes('*')) return `[*] is every element of a list, * stands for nothing else: ${instead}`
  return { kind: 'key', key: name }
}

type LastKind = 'size' | 'type' | 'keys'

const lastSteps: ReadonlyMap<string, LastKind> = new Map([
  ['@size', 'size'],
  ['@type', 'type'],
  ['@keys', 'keys'],
])

export function isLast({ kind }: PathStep): boolean {
  return kind === 'size' || kind === 'type' || kind === 'keys'
}

function bracketed(match: RegExpExecArray): PathStep | undefined {
  if (match[1] !== undefined) return { kind: 'each' }
  if (match[2] !== undefined) return { kind: 'index', index: Number(match[2]) }
  try {
    return { kind: 'key', key: JSON.parse(match[3]!) }
  } catch {
    return undefined
  }
}

/** Reads a member of any value: `missing` where it is not there, `unreadable` where it is not known. */
export type MemberReader = (value: unknown, key: string) => unknown

/** A member by exactly this name: own properties only. */
export const ownMember: MemberReader = (value, key) =>
  isRecord(value) && Object.hasOwn(value, key) ? value[key] : missing

/** The value that `steps` lead to from `value`, else `missing` or `unreadable`. */
export function follow(value: unknown, steps: readonly PathStep[], member: MemberReader, from = 0): unknown {
  for (let index = from; index < steps.length; index++) {
    const step = steps[index]!
    if (step.kind === 'each') return followEach(value, steps, member, index + 1)
    value = step.kind === 'key' ? member(value, step.key) : take(value, step)
    if (typeof value === 'symbol') return value
  }
  return value
}

function followEach(value: unknown, steps: readonly PathStep[], member: MemberReader, from: number): unknown {
  if (!Array.isArray(value)) return missing
  const items: unknown[] = []
  for (const element of value) {
    const found = follow(element, steps, member, from)
    if (found instanceof Several) for (const item of found.items) items.push(item)
    else items.push(found)
  }
  return new Several(items)
}

function take(value: unknown, step: Exclude<PathStep, { kind: 'each' | 'key' }>): unknown {
  switch (step.kind) {
    case 'index':
      return Array.isArray(value) ? elementAt(value, step.index) : missing
    case 'size':
      return sizeOf(value)
    case 'type':
      return typeName(value)
    case 'keys':
      return isRecord(value) ? Object.keys(value) : missing
  }
}

function elementAt(list: readonly unknown[], index: number): unknown {
  const place = index < 0 ? list.length + index : index
  return place >= 0 && place < list.length ? list[place] : missing
}

function sizeOf(value: unknown): unknown {
  if (typeof value === 'string' || Array.isArray(value)) return value.length
  return isRecord(value) ? Object.keys(value).length : missing
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof LongNumber)
}

/** JSON name of a value's type. */
export function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (value instanceof LongNumber) return 'number'
  return typeof value
}
