import { chargeElement, progressOf } from '../../turns/evaluation.ts'
import { Several } from '../../values/path.ts'
import {
  and,
  False,
  missing,
  or,
  True,
  type Truth,
  Unknown,
  Unreadable,
  unknown,
  unreadable,
} from '../../values/truth.ts'
import type { ElementTest } from './equality.ts'
import type { Operator } from './operators.ts'

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
    return value instanceof Several ? combine(value.leaves, present) : test(value)
  }
}

const nothing = () => undefined

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

function some(elements: readonly unknown[], test: ElementTest): Truth {
  const progress = progressOf(test, False, nothing)
  for (; progress.at < elements.length && progress.result !== True; progress.at++) {
    chargeElement(elements[progress.at])
    progress.result = or(progress.result, test(elements[progress.at]))
  }
  return progress.result
}

/** Every element and at least one. */
function every(elements: readonly unknown[], test: ElementTest): Truth {
  if (elements.length === 0) return False
  const progress = progressOf(test, True, nothing)
  for (; progress.at < elements.length && progress.result !== False; progress.at++) {
    chargeElement(elements[progress.at])
    progress.result = and(progress.result, test(elements[progress.at]))
  }
  return progress.result
}
