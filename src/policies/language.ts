/** What this folder needs of the policy language; it does not know the engine. */
export interface Language<P, C> {
  /** The policy, or everything that is wrong with the document. May yield to the event loop. */
  parse(document: unknown): Parsed<P> | Promise<Parsed<P>>
  /** In the shape of spec 2.2: values are strings, effects are capitalised. */
  format(policy: P): PolicyDocument
  /** Names the content: the same for the same rules. */
  version(policy: P): string
  /** May yield to the event loop. */
  compile(policy: P): C | Promise<C>
}

export type Parsed<P> = { readonly policy: P } | { readonly problems: readonly PolicyProblem[] }

export interface PolicyProblem {
  /** `E_...` */
  readonly code: string
  /** `rules[3].conditions[1]`; empty for the document itself. */
  readonly path: string
  readonly message: string
}

export interface PolicyDocument {
  readonly name: string
  readonly description: string
  readonly owner: string
  readonly default: string
  readonly rules: readonly unknown[]
}
