/** Models that a call names beside `model`: the provider goes to the next one when one fails, and charges the one that answered. */
import { isObject } from './records.ts'

/** LiteLLM's, for each model: they are not read. */
const unreadMembers = ['context_window_fallbacks', 'content_policy_fallbacks'] as const
/** Members that name them: `models` and `preset` are OpenRouter's, `fallbacks` also that of Anthropic and LiteLLM. */
export const fallbackMembers = ['models', 'fallbacks', 'preset', ...unreadMembers] as const

/** Providers try three: no honest call names more. */
const maxModels = 16

/** Undefined: a member has something else, or is not read. A preset may name any models, so it counts as one of its own, as in `model`. */
export function fallbackModels(memberOf: (name: string) => unknown): readonly string[] | undefined {
  if (unreadMembers.some(name => memberOf(name) != null)) return undefined
  const preset = memberOf('preset') ?? undefined
  const named = [...entriesOf(memberOf('models')), ...entriesOf(memberOf('fallbacks'))].map(modelOf)
  const all = preset === undefined ? named : [...named, typeof preset === 'string' ? `@preset/${preset}` : preset]
  return all.length <= maxModels && all.every(name => typeof name === 'string') ? all : undefined
}

/** Elements of the list, or the value alone: Anthropic takes `"default"` in its place. */
export const entriesOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value == null ? [] : [value]

/** Some servers read names in any letter case: one beside `model` could be meant. */
function modelOf(entry: unknown): unknown {
  if (!isObject(entry)) return entry
  const isOdd = Object.keys(entry).some(name => name !== 'model' && name.toLowerCase() === 'model')
  return isOdd ? undefined : entry['model']
}
