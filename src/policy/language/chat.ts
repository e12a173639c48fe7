/** Hitl rules whose requests may be approved in a chat, and the fields that its message shows. */
import type { Scope } from './condition.ts'
import type { Field } from './fields/fields.ts'
import type { Keys } from './keys.ts'
import { type Effect, limits, type Rule } from './model.ts'
import { ConditionError } from './problems.ts'
import { fieldToShow } from './title.ts'

/** @throws ConditionError saying what is wrong with one of them */
export const compileChatFields = (fields: readonly string[], scope: Scope): readonly Field[] =>
  fields.map(text => fieldToShow(text, scope, 'chatFields'))

export function readChat(keys: Keys, effect: Effect, scope: Scope): Pick<Rule, 'chatApproval' | 'chatFields'> {
  const chatApproval = keys.flag('chatApproval')
  if (chatApproval && effect !== 'Hitl') keys.problem('E_VALUE', 'chatApproval', 'chatApproval must be on a Hitl rule')
  const given = keys.get('chatFields') ?? []
  if (!Array.isArray(given) || !given.every(field => typeof field === 'string')) {
    keys.problem('E_VALUE', 'chatFields', 'chatFields must be a list of fields')
    return { chatApproval, chatFields: [] }
  }
  if (given.length > limits.chatFields) {
    keys.problem('E_LIMIT', 'chatFields', `chatFields must have at most ${limits.chatFields} fields`)
  }
  if (given.length > 0 && !chatApproval) keys.problem('E_VALUE', 'chatFields', 'chatFields must be with chatApproval')
  try {
    // As the language writes them, so that they compare with those of conditions.
    return { chatApproval, chatFields: compileChatFields(given, scope).map(({ text }) => text) }
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error
    keys.problem(error.code, 'chatFields', error.message)
    return { chatApproval, chatFields: [] }
  }
}
