import { type CompiledPolicy, compilePolicy } from '../policy/evaluation/compile.ts'
import { formatPolicy, type PolicyDocument } from '../policy/language/format.ts'
import { type LanguageOptions, parsePolicyInTurns } from '../policy/language/parse.ts'
import type { PolicyProblem } from '../policy/language/problems.ts'

/** Where a policy is kept. The API can change only policies that it keeps. */
export type PolicySource = 'config' | 'file' | 'api'

export interface PolicyEntry {
  readonly source: PolicySource
  /** As `GET /policies/{name}` shows it. */
  readonly document: PolicyDocument
  readonly compiled: CompiledPolicy
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** A policy of the API, as it is stored. */
export interface StoredEntry extends PolicyEntry {
  /** Its text in the store. */
  readonly stored: string
}

export interface PolicyInput {
  readonly source: PolicySource
  readonly document: unknown
  readonly createdAt: number
  /** Names a place in it for the operator: `policies/x.yaml:8:5`. */
  readonly where: (path: string) => string
}

/** Policies by name, and a line for each mistake in those that are left out. */
export interface PreparedSet {
  readonly entries: ReadonlyMap<string, PolicyEntry>
  readonly lines: readonly string[]
}

/** Checks and compiles one document. */
export async function prepare(
  language: LanguageOptions,
  { source, document, createdAt }: PolicyInput,
): Promise<PolicyEntry | readonly PolicyProblem[]> {
  const parsed = await parsePolicyInTurns(document, language)
  if ('problems' in parsed) return parsed.problems
  const compiled = await compilePolicy(parsed.policy, language)
  return { source, document: formatPolicy(parsed.policy), compiled, createdAt }
}

/** A document that was checked: the policy and where it is named, or a line for each mistake. */
export type Prepared = { readonly entry: PolicyEntry; readonly place: string } | { readonly lines: readonly string[] }

/** Checks and compiles one document, with a line for each mistake. The result does not refer to the text. */
export async function prepareInput(language: LanguageOptions, input: PolicyInput): Promise<Prepared> {
  const entry = await prepare(language, input)
  if ('compiled' in entry) return { entry, place: input.where('name') }
  return { lines: entry.map(problem => describe(input, problem)) }
}

/** Checks and compiles documents, with a line for each mistake. The same name twice is a mistake. */
export async function prepareSet(language: LanguageOptions, inputs: readonly PolicyInput[]): Promise<PreparedSet> {
  const prepared: Prepared[] = []
  for (const input of inputs) prepared.push(await prepareInput(language, input))
  return combine(prepared)
}

/** Policies that were checked one by one, as a set. */
export function combine(prepared: readonly Prepared[]): PreparedSet {
  const entries = new Map<string, PolicyEntry>()
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
