import type { Test } from '../language/condition.ts'
import { parseField } from '../language/fields/fields.ts'
import type { Condition } from '../language/model.ts'
import type { Facts } from '../request/facts.ts'
import { False, type Truth } from '../values/truth.ts'
import type { CompiledNode, CompiledRule } from './rule.ts'

/**
 * Many rules as one array of numbers, to pass over those that do not match. Conditions that occur in several rules are
 * asked once; equality with a plain string of the head is a comparison of two numbers.
 *
 * The array holds for each rule its conditions: a slot and the number of a literal, or -1 and the number of a test.
 */
export interface Program {
  /** Begins a request. */
  begin(facts: Facts): void
  /** The first rule from `from` on that is not certainly false, or the number of rules. */
  next(from: number, facts: Facts): number
}

const askTest = -1
const notLoaded = -1
const notAsked = 255

export function createProgram(rules: readonly CompiledRule[]): Program {
  const builder = new ProgramBuilder()
  for (const rule of rules) builder.add(rule)
  return builder.finish()
}

/** A plain string of the head that some rules compare, with the numbers of the literals they compare it with. */
interface Slot {
  readonly read: (facts: Facts) => string
  readonly literals: Map<string, number>
}

class ProgramBuilder {
  readonly #code: number[] = []
  readonly #starts: number[] = [0]
  readonly #slots: Slot[] = []
  readonly #slotByField = new Map<string, number>()
  readonly #tests: Test[] = []
  readonly #testByText = new Map<string, number>()

  add(rule: CompiledRule): void {
    const simple: number[] = []
    const other: number[] = []
    for (const compiled of rule.inOrder) {
      const equality = 'field' in compiled.node ? this.#equality(compiled.node) : undefined
      if (equality !== undefined) simple.push(...equality)
      else other.push(askTest, this.#test(compiled))
    }
    this.#code.push(...simple, ...other)
    this.#starts.push(this.#code.length)
  }

  finish(): Program {
    return new FlatProgram({
      code: Int32Array.from(this.#code),
      starts: Int32Array.from(this.#starts),
      slots: this.#slots,
      tests: this.#tests,
    })
  }

  #equality(condition: Condition): readonly [number, number] | undefined {
    if (condition.operator !== 'eq' || condition.ignoreCase || condition.valueType !== undefined) return undefined
    const field = parseField(condition.field)
    if (typeof field === 'string' || field.plain === undefined) return undefined
    const { literals } = this.#slots[this.#slot(condition.field, field.plain)]!
    const text = field.kind.normalise?.(condition.value) ?? condition.value
    const literal = literals.get(text) ?? literals.size
    literals.set(text, literal)
    return [this.#slotByField.get(condition.field)!, literal]
  }

  #slot(field: string, read: Slot['read']): number {
    const known = this.#slotByField.get(field)
    if (known !== undefined) return known
    this.#slotByField.set(field, this.#slots.length)
    return this.#slots.push({ read, literals: new Map() }) - 1
  }

  #test({ node, test }: CompiledNode): number {
    const text = JSON.stringify(node)
    const known = this.#testByText.get(text)
    if (known !== undefined) return known
    this.#testByText.set(text, this.#tests.length)
    return this.#tests.push(test) - 1
  }
}

interface ProgramParts {
  readonly code: Int32Array
  readonly starts: Int32Array
  readonly slots: readonly Slot[]
  readonly tests: readonly Test[]
}

function literalsIn({ read, literals }: Slot, readings: readonly Facts[]): ReadonlySet<number> {
  return new Set(readings.map(facts => literals.get(read(facts)) ?? notLoaded))
}

function isAmong(others: readonly ReadonlySet<number>[] | undefined, slot: number, wanted: number): boolean {
  return others !== undefined && others[slot]!.has(wanted)
}

/**
 * Deciding is synchronous and never nested, so one set of working memory serves all requests. It holds numbers alone:
 * a policy lives long, and must not keep the last request and its body alive.
 */
class FlatProgram implements Program {
  readonly #parts: ProgramParts
  readonly #loaded: Int32Array
  readonly #asked: Uint8Array
  /** Literals that other readings of the path have, by slot; undefined when there is one reading. */
  #others: readonly ReadonlySet<number>[] | undefined

  constructor(parts: ProgramParts) {
    this.#parts = parts
    this.#loaded = new Int32Array(parts.slots.length)
    this.#asked = new Uint8Array(parts.tests.length)
  }

  begin(facts: Facts): void {
    this.#asked.fill(notAsked)
    const { slots } = this.#parts
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index]!
      this.#loaded[index] = slot.literals.get(slot.read(facts)) ?? notLoaded
    }
    this.#others = facts.readings && slots.map(slot => literalsIn(slot, facts.readings!))
  }

  next(from: number, facts: Facts): number {
    const { code, starts } = this.#parts
    const count = starts.length - 1
    const loaded = this.#loaded
    const others = this.#others
    for (let rule = from; rule < count; rule++) {
      const end = starts[rule + 1]!
      let at = starts[rule]!
      while (at < end) {
        const slot = code[at]!
        const wanted = code[at + 1]!
        if (
          slot === askTest
            ? this.#ask(wanted, facts) === False
            : loaded[slot] !== wanted && !isAmong(others, slot, wanted)
        )
          break
        at += 2
      }
      if (at >= end) return rule
    }
    return count
  }

  #ask(index: number, facts: Facts): Truth {
    const known = this.#asked[index]!
    if (known !== notAsked) return known as Truth
    const value = this.#parts.tests[index]!(facts)
    this.#asked[index] = value
    return value
  }
}
