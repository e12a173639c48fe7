import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import type { PolicyProblem } from '../policy/language/problems.ts'
import type { Clock } from '../runtime/clock.ts'
import type { PolicyRecord, Store } from '../storage/store.ts'
import type { ActivePolicies } from './active-policies.ts'
import { type PolicyEntry, prepare, type StoredEntry } from './entry.ts'
import type { RuleEvidence } from './evidence.ts'

/** The caller of a change, for the audit trail. */
export interface PolicyEditor {
  readonly actor: string
  readonly requestId: string | null
  /** Why; for the entry of the trail. */
  readonly comment?: string | undefined
  /** By policy, what was recorded of the requests that its new rules match; null: it cannot be told. */
  readonly evidence?: ReadonlyMap<string, readonly RuleEvidence[] | null>
  /** Versions of the policy that is replaced or removed, one of which it must have; absent: any. */
  readonly versions?: readonly string[] | undefined
}

/** What a change over the API needs. A policy is checked and compiled, then stored; the feed puts it in force. */
export interface EditParts {
  readonly store: Pick<Store, 'policies'>
  readonly language: LanguageOptions
  readonly clock: Clock
  /** What still refers to the policy, for people: `agent 0b8e...`, `Policy:Global`; undefined when nothing does. */
  readonly usedBy: (name: string) => string | undefined
  readonly active: ActivePolicies
  /** Policies that are being stored, by their text: they need not be compiled again. */
  readonly known: Map<string, PolicyEntry>
}

type EditResult = Promise<PolicyEntry | Refusal>

/**
 * The audit entry of a change keeps the document, so that the trail shows what each version said.
 *
 * @param isRepeatable a policy of the API that says the same already is no mistake
 */
export async function createPolicy(
  parts: EditParts,
  document: unknown,
  by: PolicyEditor,
  isRepeatable: boolean,
): EditResult {
  const { store, clock, active } = parts
  const now = clock.now()
  const entry = await prepareEdit(parts, document, now)
  if (isRefusal(entry)) return entry
  const { name } = entry.document
  const existing = () => {
    const before = active.inForce.get(name)
    const isSame = before?.source === 'api' && before.compiled.version === entry.compiled.version
    return isSame && isRepeatable ? before : refuse('already_exists')
  }
  if (active.inForce.has(name)) return existing()
  const record = { name, document: JSON.stringify(entry.document), createdAt: now, updatedAt: now }
  const details = { after: entry.compiled.version, ...reasonsOf(by, name), document: entry.document }
  const audit = { at: now, ...actorOf(by), action: 'policy.create', subject: name, details }
  const stored = await keep(parts, entry, record, () => store.policies.insert(record, audit))
  return stored === 'exists' ? existing() : entry
}

export async function replacePolicy(parts: EditParts, name: string, document: object, by: PolicyEditor): EditResult {
  const { store, clock, active } = parts
  const before = editable(active, name)
  if (isRefusal(before)) return before
  if (by.versions?.includes(before.compiled.version) === false) return changedBefore
  const entry = await prepareEdit(parts, withName(name, document), before.createdAt)
  if (isRefusal(entry)) return entry
  if (entry.document.name !== name)
    return refuseProblems([{ code: 'E_NAME', path: 'name', message: `must be ${name}, as in the path` }])
  const now = clock.now()
  const record = { name, document: JSON.stringify(entry.document), createdAt: before.createdAt, updatedAt: now }
  const versions = { before: before.compiled.version, after: entry.compiled.version }
  const details = { ...versions, ...reasonsOf(by, name), document: entry.document }
  const audit = { at: now, ...actorOf(by), action: 'policy.replace', subject: name, details }
  const stored = await keep(parts, entry, record, () =>
    store.policies.update(record, audit, by.versions && before.stored),
  )
  if (stored === 'stale') return changedBefore
  return stored === 'notFound' ? refuse('not_found') : entry
}

/** A document that may leave its name out. */
export const withName = (name: string, document: object): object =>
  'name' in document || 'Name' in document ? document : { name, ...document }

const changedBefore = refuse(
  'not_as_seen',
  'If-Match does not name the version of this policy: somebody changed it. Read it again before you change it.',
)

export const actorOf = ({ actor, requestId }: PolicyEditor) => ({ actor, requestId })

export const reasonsOf = ({ comment, evidence }: PolicyEditor, name: string) => ({
  ...(comment === undefined || comment === '' ? {} : { comment }),
  ...(evidence?.has(name) ? { evidence: evidence.get(name) } : {}),
})

/** Resolves when the policy is in force. */
async function keep<T>({ known }: EditParts, entry: PolicyEntry, { document }: PolicyRecord, store: () => Promise<T>) {
  known.set(document, entry)
  try {
    return await store()
  } finally {
    known.delete(document)
  }
}

export async function removePolicy(
  parts: EditParts,
  name: string,
  by: PolicyEditor,
): Promise<{ readonly removed: string } | Refusal> {
  const { store, clock, active } = parts
  const before = editable(active, name)
  if (isRefusal(before)) return before
  if (by.versions?.includes(before.compiled.version) === false) return changedBefore
  const user = parts.usedBy(name)
  if (user !== undefined) return refuse('in_use', `The policy is still named by ${user}.`)
  const details = { before: before.compiled.version }
  const audit = { at: clock.now(), ...actorOf(by), action: 'policy.remove', subject: name, details }
  const stored = await store.policies.remove(name, audit, by.versions && before.stored)
  if (stored === 'stale') return changedBefore
  return stored === 'notFound' ? refuse('not_found') : { removed: name }
}

/** A policy that the API may store, or its mistakes. */
export async function prepareEdit(
  parts: Pick<EditParts, 'language'>,
  document: unknown,
  createdAt: number,
): EditResult {
  const entry = await prepare(parts.language, { source: 'api', document, createdAt, where: path => path })
  return 'compiled' in entry ? entry : refuseProblems(entry)
}

function editable(active: ActivePolicies, name: string): StoredEntry | Refusal {
  if (active.fixed.has(name)) return refuse('read_only')
  return active.editable.get(name) ?? refuse('not_found')
}

function refuseProblems(problems: readonly PolicyProblem[]): Refusal {
  const errors = problems.map(({ code, path, message }) => ({ field: path, message, code }))
  return refuse('invalid_policy', undefined, { errors })
}
