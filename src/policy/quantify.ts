import type { ElementTest } from './equality.ts'
import type { Operator } from './operators.ts'
import { Several } from './path.ts'
import { and, False, missing, or, True, type Truth, Unknown, Unreadable, unknown, unreadable } from './truth.ts'

/** Asks a test of a field's value, whatever its state and shape. */
export function asker(operator: Operator, test: ElementTest, quantifier: 'any' | 'all'): (value: unknown) => Truth {
  const combine = quantifier === 'all' ? every : some
  if (operator.form.asks === 'list') return value => stateOf(value) ?? test(value)
  if (operator.form.asks === 'whole') {
    return value => {
      if (value === missing) return test(missing)
      return stateOf(value) ?? (value instanceof Several ? askWhole(value, test, combine) : test(value))
    }
  }
  const present: ElementTest = element => (element === missing ? False : test(element))
  return value => {
    const state = stateOf(value)
    if (state !== undefined) return state
    if (Array.isArray(value)) return combine(value, test)
    return value instanceof Several ? combine(leavesOf(value), present) : test(value)
  }
}

type Combine = (elements: readonly unknown[], test: ElementTest) => Truth

function askWhole(value: Several, test: ElementTest, combine: Combine): Truth {
  return value.items.length === 0 ? test(missing) : combine(value.items, test)
}

/** The answer for a value that is not there. */
function stateOf(value: unknown): Truth | undefined {
  if (value === missing) return False
  if (value === unknown) return Unknown
  return value === unreadable ? Unreadable : undefined
}

/** Elements behind `[*]`; a list at the end of the path stands for its entries, an empty one for a missing entry. */
function leavesOf(several: Several): readonly unknown[] {
  return several.items.flatMap(item => (Array.isArray(item) && item.length > 0 ? item : [emptyAsMissing(item)]))
}

function emptyAsMissing(item: unknown): unknown {
  return Array.isArray(item) ? missing : item
}

function some(elements: readonly unknown[], test: ElementTest): Truth {
  let result: Truth = False
  for (const element of elements) {
    result = or(result, test(element))
    if (result === True) return True
  }
  return result
}

/** Every element and at least one. */
function every(elements: readonly unknown[], test: ElementTest): Truth {
  if (elements.length === 0) return False
  let result: Truth = True
  for (const element of elements) {
    result = and(result, test(element))
    if (result === False) return False
  }
  return result
}
