/** Puts several policies in the place of those made over the API before, in one commit. */
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { PolicyEdit } from '../storage/store.ts'
import { actorOf, type EditParts, type PolicyEditor, reasonsOf } from './edit.ts'
import { type PolicyEntry, prepare } from './entry.ts'

export interface PolicyPush {
  readonly policies: readonly unknown[]
  /** Removes the policies made over the API that are not among these. */
  readonly prune: boolean
  /** Only says what would change. */
  readonly dryRun?: boolean
}

/** Names. */
export interface Pushed {
  readonly created: readonly string[]
  readonly replaced: readonly string[]
  readonly removed: readonly string[]
  readonly unchanged: readonly string[]
}

/** Refusals: invalid_policy, read_only, in_use; then nothing was changed. */
export async function pushPolicies(parts: EditParts, push: PolicyPush, by: PolicyEditor): Promise<Pushed | Refusal> {
  const { active, store, known, clock } = parts
  const entries = await prepareAll(parts, push.policies)
  if (isRefusal(entries)) return entries
  const names = new Set(entries.map(({ document }) => document.name))
  const fixed = [...names].find(name => active.fixed.has(name))
  if (fixed !== undefined) return refuse('read_only', `The policy ${fixed} comes from a file or the settings.`)
  const removed = push.prune ? [...active.editable.keys()].filter(name => !names.has(name)) : []
  for (const name of removed) {
    const user = parts.usedBy(name)
    if (user !== undefined) return refuse('in_use', `The policy ${name} is still named by ${user}.`)
  }
  const versionOf = (name: string) => active.editable.get(name)?.compiled.version
  const created = entries.filter(({ document }) => !active.editable.has(document.name))
  const replaced = entries.filter(
    ({ document: { name }, compiled }) => ![undefined, compiled.version].includes(versionOf(name)),
  )
  const now = clock.now()
  const actor = actorOf(by)
  const edits = [
    ...created.map(entry =>
      editOf(entry, { at: now, ...actor, action: 'policy.create' }, reasonsOf(by, nameOf(entry))),
    ),
    ...replaced.map(entry => {
      const reasons = { before: versionOf(nameOf(entry)), ...reasonsOf(by, nameOf(entry)) }
      return editOf(entry, { at: now, ...actor, action: 'policy.replace' }, reasons)
    }),
    ...removed.map((name): PolicyEdit => {
      const details = { before: versionOf(name) }
      return { name, policy: undefined, entry: { at: now, ...actor, action: 'policy.remove', subject: name, details } }
    }),
  ]
  const changed = [...created, ...replaced]
  for (const entry of changed) known.set(JSON.stringify(entry.document), entry)
  try {
    if (edits.length > 0 && push.dryRun !== true) await store.policies.apply(edits)
  } finally {
    for (const entry of changed) known.delete(JSON.stringify(entry.document))
  }
  const unchanged = entries.filter(entry => !changed.includes(entry))
  return { created: namesOf(created), replaced: namesOf(replaced), removed, unchanged: namesOf(unchanged) }
}

const nameOf = ({ document }: PolicyEntry): string => document.name
const namesOf = (entries: readonly PolicyEntry[]) => entries.map(nameOf)

function editOf(
  { document, compiled, createdAt }: PolicyEntry,
  audit: Omit<PolicyEdit['entry'], 'subject' | 'details'>,
  more: object,
): PolicyEdit {
  const { name } = document
  const details = { ...more, after: compiled.version, document }
  const policy = { name, document: JSON.stringify(document), createdAt, updatedAt: createdAt }
  return { name, policy, entry: { ...audit, subject: name, details } }
}

/** The mistakes of all of them, each with its place in the body. */
async function prepareAll(parts: EditParts, documents: readonly unknown[]): Promise<PolicyEntry[] | Refusal> {
  const entries = new Map<string, PolicyEntry>()
  const errors: { field: string; message: string; code: string }[] = []
  for (const [index, document] of documents.entries()) {
    const place = (path: string) => (path === '' ? `policies[${index}]` : `policies[${index}].${path}`)
    const createdAt = parts.clock.now()
    const entry = await prepare(parts.language, { source: 'api', document, createdAt, where: place })
    if (!('compiled' in entry)) {
      errors.push(...entry.map(({ code, path, message }) => ({ field: place(path), message, code })))
    } else if (entries.has(entry.document.name)) {
      errors.push({ field: place('name'), message: 'must not be that of another policy', code: 'E_NAME' })
    } else entries.set(entry.document.name, entry)
  }
  return errors.length > 0 ? refuse('invalid_policy', undefined, { errors }) : [...entries.values()]
}
