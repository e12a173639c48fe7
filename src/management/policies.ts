import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { RuleCount } from '../limits/rule-tally.ts'
import type { RuleUsage } from '../policies/drift.ts'
import { type PolicyEditor, withName } from '../policies/edit.ts'
import type { PolicyEntry } from '../policies/entry.ts'
import type { PolicyPush } from '../policies/push.ts'
import { lintPolicy } from '../policy/lint/lint.ts'
import type { LintWarning } from '../policy/lint/warning.ts'
import { StoreError } from '../storage/store.ts'
import { by } from './agents.ts'
import { bodyOf, doneUnlessRefused, type Handlers, ifMatch, type ManagementCall, replyOf, textsOf } from './call.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { cutPage, pageReply, readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'
import { evidenceOf } from './policy-changes.ts'

/** Operations of spec 4.3, and those that change policies. */
export function policyHandlers(parts: ManagementParts): Handlers['guarded'] {
  const { book, explain, hits, ruleHits, shadows } = parts
  return {
    listPolicies(call) {
      const page = readPage(call)
      const { items, totalCount } = cutPage(book.list(), page)
      return pageReply(page, { items: items.map(summarise), totalCount })
    },
    async getPolicy(call) {
      const entry = book.entry(call.named)
      if (entry === undefined) return refuse('not_found')
      const { name } = entry.document
      return jsonReply(
        200,
        {
          ...detail(entry),
          hits: withUsage(hits.of(name), await ruleHits.of(name).catch(unlessAway)),
          shadow: shadows.of(name).map(({ rule, would, count }) => ({ rule, would, count })),
        },
        tagOf(entry),
      )
    },
    async createPolicy(call) {
      const key = readIdempotencyKey(call)
      if (isRefusal(key)) return key
      const editor = await editorOf(call, [call.body], parts)
      if (isRefusal(editor)) return editor
      const entry = await book.create(call.body, editor, key !== undefined)
      if (isRefusal(entry)) return entry
      return jsonReply(201, detail(entry), ['Location', `/policies/${entry.document.name}`, ...tagOf(entry)])
    },
    async pushPolicies(call) {
      const push = bodyOf<PolicyPush>(call)
      const editor = await editorOf(call, push.dryRun === true ? [] : push.policies, parts)
      if (isRefusal(editor)) return editor
      return replyOf(await book.push(push, editor))
    },
    async replacePolicy(call) {
      const body = bodyOf<object>(call)
      const editor = await editorOf(call, [withName(call.named, body)], parts)
      if (isRefusal(editor)) return editor
      const entry = await book.replace(call.named, body, editor)
      return isRefusal(entry) ? entry : jsonReply(200, detail(entry), tagOf(entry))
    },
    async deletePolicy(call) {
      return doneUnlessRefused(await book.remove(call.named, { ...by(call), versions: ifMatch(call) }))
    },
    checkPolicy: call => check(call, parts),
    async explainPolicy(call) {
      const policy = book.get(call.named)
      if (policy === undefined) return refuse('not_found')
      return replyOf(await explain(policy, call.body))
    },
  }
}

/** A policy that is not in force: its mistakes, or its warnings and what it decides. */
async function check(
  call: ManagementCall,
  parts: Pick<ManagementParts, 'book' | 'explain' | 'clock' | 'policyWork' | 'language'>,
): Promise<Reply | Refusal> {
  const { book, explain } = parts
  const { policy, requests = [] } = bodyOf<{ readonly policy: object; readonly requests?: readonly unknown[] }>(call)
  const entry = await book.check(policy)
  if (isRefusal(entry)) return entry
  const { compiled } = entry
  const explanations: object[] = []
  for (const request of requests) {
    const explanation = await explain(compiled, request)
    if (isRefusal(explanation)) return explanation
    explanations.push(explanation)
  }
  const warnings = await warningsOf(entry, call, parts)
  if (isRefusal(warnings)) return warnings
  return jsonReply(200, {
    version: compiled.version,
    warnings: warnings.map(({ code, path, message }) => ({ code, path, message })),
    explanations,
  })
}

/** Rules of which warnings are looked for at once: that takes some milliseconds. */
const maxAtOnce = 50

function warningsOf(
  { compiled: { policy }, document }: PolicyEntry,
  { left }: ManagementCall,
  { policyWork, language, clock }: Pick<ManagementParts, 'policyWork' | 'language' | 'clock'>,
): readonly LintWarning[] | Promise<readonly LintWarning[] | Refusal> {
  const now = clock.now()
  if (policy.rules.length <= maxAtOnce) return lintPolicy(policy, { ...language, now }).warnings
  return policyWork.run(thread => thread.call('lint', [document, language, now]), left)
}

/** @param documents that are saved */
async function editorOf(
  call: ManagementCall,
  documents: readonly unknown[],
  parts: ManagementParts,
): Promise<PolicyEditor | Refusal> {
  const evidence = await evidenceOf(documents, call, parts)
  return call.problemNow() ?? { ...by(call), comment: textsOf(call)['comment'], versions: ifMatch(call), evidence }
}

function summarise({ document, source }: PolicyEntry) {
  const { name, description, owner } = document
  return {
    name,
    policyName: name,
    description,
    owner,
    default: document.default,
    ruleCount: document.rules.length,
    source,
  }
}

function detail({ document, createdAt, compiled: { version }, source }: PolicyEntry) {
  return { ...document, CreatedOn: new Date(createdAt).toISOString(), version, source }
}

const tagOf = ({ compiled: { version } }: PolicyEntry): readonly string[] => ['ETag', `"${version}"`]

const dayMs = 86_400_000

/** Policies are in memory, and are read without the store as well. */
function unlessAway(error: unknown): undefined {
  if (!(error instanceof StoreError)) throw error
}

/** How often each rule decided, since the start and in all. @param usage undefined: the store cannot be read */
function withUsage(counts: readonly Pick<RuleCount, 'rule' | 'count'>[], usage: readonly RuleUsage[] | undefined) {
  const rules = new Set([...counts, ...(usage ?? [])].map(({ rule }) => rule))
  return [...rules].map(rule => {
    const stored = usage?.find(one => one.rule === rule)
    return {
      rule,
      count: counts.find(one => one.rule === rule)?.count ?? 0,
      total: usage === undefined ? null : (stored?.count ?? 0),
      lastDay: stored === undefined ? null : new Date(stored.lastDay * dayMs).toISOString().slice(0, 10),
    }
  })
}
