import { isRefusal, refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { PolicyEntry } from '../policies/entry.ts'
import type { PolicyPush } from '../policies/push.ts'
import { by } from './agents.ts'
import { bodyOf, done, type Handlers } from './call.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { cutPage, pageReply, readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** Operations of spec 4.3, and those that change policies. */
export function policyHandlers({ book, explain, hits, shadows }: ManagementParts): Handlers['guarded'] {
  return {
    listPolicies(call) {
      const page = readPage(call)
      const { items, totalCount } = cutPage(book.list(), page)
      return pageReply(page, { items: items.map(summarise), totalCount })
    },
    getPolicy(call) {
      const entry = book.entry(call.named)
      if (entry === undefined) return refuse('not_found')
      const { name } = entry.document
      return jsonReply(200, {
        ...detail(entry),
        hits: hits.of(name).map(({ rule, count }) => ({ rule, count })),
        shadow: shadows.of(name).map(({ rule, would, count }) => ({ rule, would, count })),
      })
    },
    async createPolicy(call) {
      const key = readIdempotencyKey(call)
      if (isRefusal(key)) return key
      const entry = await book.create(call.body, by(call), key !== undefined)
      if (isRefusal(entry)) return entry
      return jsonReply(201, detail(entry), ['Location', `/policies/${entry.document.name}`])
    },
    async pushPolicies(call) {
      const pushed = await book.push(bodyOf<PolicyPush>(call), by(call))
      return isRefusal(pushed) ? pushed : jsonReply(200, pushed)
    },
    async replacePolicy(call) {
      const entry = await book.replace(call.named, bodyOf<object>(call), by(call))
      return isRefusal(entry) ? entry : jsonReply(200, detail(entry))
    },
    async deletePolicy(call) {
      const removed = await book.remove(call.named, by(call))
      return isRefusal(removed) ? removed : done
    },
    async explainPolicy(call) {
      const policy = book.get(call.named)
      if (policy === undefined) return refuse('not_found')
      const explanation = await explain(policy, call.body)
      return isRefusal(explanation) ? explanation : jsonReply(200, explanation)
    },
  }
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
