import { didYouMean } from '../../base/nearest.ts'
import { isRecord } from '../values/path.ts'
import type { ProblemCode, Problems } from './problems.ts'

interface MapShape {
  /** Path of the map in the document; empty for the document itself. */
  readonly path: string
  readonly known: readonly string[]
  /** Keys that may be there and mean nothing. */
  readonly ignored: readonly string[]
}

/** Reads the keys of one map of a policy document; unknown ones are mistakes. The first letter may be a capital. */
export class Keys {
  readonly #values = new Map<string, unknown>()
  readonly #spelled = new Map<string, string>()
  readonly #path: string
  readonly #problems: Problems

  private constructor(path: string, problems: Problems) {
    this.#path = path
    this.#problems = problems
  }

  static of(value: unknown, shape: MapShape, problems: Problems): Keys | undefined {
    if (!isRecord(value)) return undefined
    const keys = new Keys(shape.path, problems)
    for (const [spelled, entry] of Object.entries(value)) {
      const key = spelled.charAt(0).toLowerCase() + spelled.slice(1)
      if (shape.known.includes(key)) keys.#set(key, spelled, entry)
      else if (!shape.ignored.includes(key)) {
        const hint = didYouMean(key, shape.known)
        problems.add('E_UNKNOWN_KEY', keys.#join(spelled), `unknown key ${JSON.stringify(spelled.slice(0, 64))}${hint}`)
      }
    }
    return keys
  }

  #set(key: string, spelled: string, entry: unknown): void {
    if (this.#values.has(key)) this.#problems.add('E_DUPLICATE', this.#join(spelled), `${key} must be given once`)
    this.#values.set(key, entry)
    this.#spelled.set(key, spelled)
  }

  get(key: string): unknown {
    return this.#values.get(key)
  }

  /** Path of a key in the document, as the author spelled it. */
  at(key: string): string {
    return this.#join(this.#spelled.get(key) ?? key)
  }

  #join(key: string): string {
    return this.#path === '' ? key : `${this.#path}.${key}`
  }

  problem(code: ProblemCode, key: string, message: string): void {
    this.#problems.add(code, this.at(key), message)
  }

  text(key: string, standard: string): string {
    const value = this.get(key) ?? standard
    if (typeof value === 'string') return value
    this.problem('E_VALUE', key, `${key} must be text`)
    return standard
  }

  flag(key: string): boolean {
    const value = this.get(key) ?? false
    if (typeof value === 'boolean') return value
    if (typeof value === 'string' && /^(true|false)$/i.test(value)) return value.toLowerCase() === 'true'
    this.problem('E_VALUE', key, `${key} must be true or false`)
    return false
  }

  /** One of `known`, any letter case. */
  choice<const C extends string>(key: string, known: readonly C[], standard: NoInfer<C>): C {
    return (this.get(key) ?? null) === null ? standard : (this.oneOf(key, known) ?? standard)
  }

  /** The same without a standard: undefined, and a mistake, when it is missing or another one. */
  oneOf<const C extends string>(key: string, known: readonly C[]): C | undefined {
    const value = this.get(key)
    const found = typeof value === 'string' ? wordOf(value, known) : undefined
    if (found !== undefined) return found
    const hint = typeof value === 'string' ? didYouMean(value, known) : ''
    this.problem('E_VALUE', key, `${key} must be one of ${known.join(', ')}${hint}`)
    return undefined
  }
}

/** The one of `known` that the text spells, in any letter case. */
export function wordOf<C extends string>(text: string, known: readonly C[]): C | undefined {
  const wanted = text.toLowerCase()
  return known.find(word => word.toLowerCase() === wanted)
}
