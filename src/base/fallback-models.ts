/** Models that a call names beside `model`: the provider goes to the next one when one fails, and charges the one that answered. */
import { isObject } from './records.ts'

/** Members that name them: the first and the last are OpenRouter's, `fallbacks` also that of Anthropic and LiteLLM. */
export const fallbackMembers = ['models', 'fallbacks', 'preset'] as const

/** Providers try three. */
const maxModels = 16

/** Undefined: a member has something else. A preset may name any models, so it counts as one of its own, as in `model`. */
export function fallbackModels(memberOf: (name: string) => unknown): readonly string[] | undefined {
  const preset = memberOf('preset') ?? undefined
  const named = [...entriesOf(memberOf('models')), ...entriesOf(memberOf('fallbacks'))].map(modelOf)
  const all = preset === undefined ? named : [...named, typeof preset === 'string' ? `@preset/${preset}` : preset]
  return all.length <= maxModels && all.every(name => typeof name === 'string') ? all : undefined
}

/** Elements of the list, or the value alone: Anthropic takes `"default"` in its place. */
export const entriesOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value == null ? [] : [value]

const modelOf = (entry: unknown): unknown => (isObject(entry) ? entry['model'] : entry)
