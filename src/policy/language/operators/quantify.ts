import { chargeElement, progressOf } from '../../turns/evaluation.ts'
import { Messages, Several } from '../../values/path.ts'
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
import type { ElementTest } from './element-tests.ts'
import type { Operator } from './operators.ts'

type Ask = (value: unknown) => Truth

/** Applies a test to a field's value of any state and shape. Every message of a batch must give the same answer. */
export function asker(operator: Operator, test: ElementTest, quantifier: 'any' | 'all'): Ask {
  const ask = askerOfOne(operator, test, quantifier)
  if (quantifier === 'all') return ask
  const askerOf = (element: ElementTest) => askerOfOne(operator, element, quantifier)
  const ofMessages = { key: ask, test, askerOf }
  return value => (value instanceof Messages ? askMessages(value.messages, ofMessages) : ask(value))
}

interface MessageTest {
  /** Key under which its progress is kept. */
  readonly key: object
  readonly test: ElementTest
  readonly askerOf: (element: ElementTest) => Ask
}

/**
 * The common answer of all messages; unreadable where they differ, so that a rule for one message does not let the
 * others pass.
 */
function askMessages(messages: readonly unknown[], { key, test, askerOf }: MessageTest): Truth {
  const progress = progressOf<{ at: number; ask: Ask | undefined }>(key, Unknown, () => ({ at: -1, ask: undefined }))
  const { state } = progress
  for (; progress.at < messages.length && progress.result !== Unreadable; progress.at++) {
    // Each message has a test of its own, which remembers its progress.
    if (state.at !== progress.at) {
      state.at = progress.at
      state.ask = askerOf(element => test(element))
    }
    const answer = state.ask?.(messages[progress.at]) ?? Unknown
    progress.result = progress.at === 0 || answer === progress.result ? answer : Unreadable
  }
  return progress.result
}

function askerOfOne(operator: Operator, test: ElementTest, quantifier: 'any' | 'all'): Ask {
  const combine = quantifier === 'all' ? every : some
  if (operator.form.asks === 'list') return value => stateOf(value) ?? askList(value, test)
  if (operator.form.asks === 'whole') {
    const readable: ElementTest = element => (element === unreadable ? Unreadable : test(element))
    return value => {
      if (value === missing) return test(missing)
      return stateOf(value) ?? (value instanceof Several ? askWhole(value, readable, combine) : test(value))
    }
  }
  const present: ElementTest = element => stateOf(element) ?? test(element)
  return value => {
    const state = stateOf(value)
    if (state !== undefined) return state
    if (Array.isArray(value)) return combine(value, test)
    return value instanceof Several ? combine(value.leaves, present) : test(value)
  }
}

/** What is unreadable may be what the list lacks. */
function askList(value: unknown, test: ElementTest): Truth {
  const result = test(value)
  const isDoubtful = result === False && value instanceof Several && value.items.includes(unreadable)
  return isDoubtful ? Unreadable : result
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
