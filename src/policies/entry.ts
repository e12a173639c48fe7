import type { Language, PolicyDocument, PolicyProblem } from './language.ts'

/** Where a policy is kept. Only those of the API can be changed over it. */
export type PolicySource = 'config' | 'file' | 'api'

/** One policy in force. */
export interface PolicyEntry<C> {
  readonly source: PolicySource
  /** As `GET /policies/{name}` shows it. */
  readonly document: PolicyDocument
  readonly compiled: C
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** `sha256:<hex>` of the content. */
  readonly version: string
}

/** A document that is to become a policy. */
export interface PolicyInput {
  readonly source: PolicySource
  readonly document: unknown
  readonly createdAt: number
  /** Names a place in it for the operator: `policies/x.yaml:8:5`. */
  readonly where: (path: string) => string
}

/** Policies by name, and a line for each mistake in those that are left out. */
export interface PreparedSet<C> {
  readonly entries: ReadonlyMap<string, PolicyEntry<C>>
  readonly lines: readonly string[]
}

/** Checks and compiles one document. */
export async function prepare<P, C>(
  language: Language<P, C>,
  input: PolicyInput,
): Promise<PolicyEntry<C> | readonly PolicyProblem[]> {
  const parsed = await language.parse(input.document)
  if ('problems' in parsed) return parsed.problems
  const document = language.format(parsed.policy)
  const compiled = await language.compile(parsed.policy)
  const { source, createdAt } = input
  return { source, document, compiled, createdAt, version: language.version(parsed.policy) }
}

/** A document that was checked: the policy and where it is named, or a line for each mistake. */
export type Prepared<C> =
  | { readonly entry: PolicyEntry<C>; readonly place: string }
  | { readonly lines: readonly string[] }

/** Checks and compiles one document, with its mistakes as lines. Keeps nothing of the text it came from. */
export async function prepareInput<P, C>(language: Language<P, C>, input: PolicyInput): Promise<Prepared<C>> {
  const entry = await prepare(language, input)
  if ('compiled' in entry) return { entry, place: input.where('name') }
  return { lines: entry.map(problem => describe(input, problem)) }
}

/** Checks and compiles what can be, and names every mistake in the rest. A name given twice is one. */
export async function prepareSet<P, C>(
  language: Language<P, C>,
  inputs: readonly PolicyInput[],
): Promise<PreparedSet<C>> {
  const prepared: Prepared<C>[] = []
  for (const input of inputs) prepared.push(await prepareInput(language, input))
  return gather(prepared)
}

/** Policies that were checked one by one, as a set. */
export function gather<C>(prepared: readonly Prepared<C>[]): PreparedSet<C> {
  const entries = new Map<string, PolicyEntry<C>>()
  const places = new Map<string, string>()
  const lines: string[] = []
  for (const one of prepared) {
    if ('lines' in one) {
      lines.push(...one.lines)
      continue
    }
    const { entry, place } = one
    const { name } = entry.document
    const other = places.get(name)
    if (other !== undefined) lines.push(`${place}: the policy ${name} is also in ${other} (E_NAME)`)
    places.set(name, place)
    entries.set(name, entry)
  }
  return { entries, lines }
}

function describe(input: PolicyInput, { code, path, message }: PolicyProblem): string {
  return `${[input.where(path), path].filter(part => part !== '').join(': ')}: ${message} (${code})`
}
