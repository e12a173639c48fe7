import type { CompiledPolicy } from '../evaluation/compile.ts'
import { walk } from '../evaluation/walk.ts'
import { type Effect, type Node, type Rule, stricter } from '../language/model.ts'
import { readWords } from '../language/operators/values.ts'
import type { RequestDraft } from '../lint/draft.ts'
import { factsOf } from '../lint/examined.ts'
import { draftOf, requestOf } from '../lint/witness.ts'
import type { DescribedRequest } from '../request/describe.ts'

/** A request to which the new policy gives a milder effect. */
export interface MilderRequest {
  readonly method: string
  readonly url: string
  /** Header fields that it rests on. */
  readonly headers: RequestDraft['headers']
  readonly body: string
  /** Facts of the agent that it rests on. */
  readonly agent: Readonly<Record<string, unknown>>
  readonly before: Effect
  readonly after: Effect
  /** Rules that decide; null: the default. */
  readonly ruleBefore: string | null
  readonly ruleAfter: string | null
}

/** Requests that are made from one rule, and that are shown. */
const maxVariants = 64
const maxExamples = 20

/** Requests made from the rules of both policies that the new one treats more mildly; each was decided by both. */
export function milderRequests(before: CompiledPolicy, after: CompiledPolicy): readonly MilderRequest[] {
  const rules = [...after.rules, ...before.rules].map(({ rule }) => rule)
  const found = new Map<string, MilderRequest>()
  for (const conditions of [[], ...rules.flatMap(variantsOf)]) {
    const draft = draftOf(conditions)
    const request = draft && requestOf(draft)
    const milder = request && compare(before, after, request)
    if (milder === undefined) continue
    // One example for each pair of rules is enough.
    const key = JSON.stringify([milder.ruleBefore, milder.ruleAfter])
    if (!found.has(key)) found.set(key, { ...milder, headers: draft?.headers ?? {}, agent: draft?.agent ?? {} })
    if (found.size >= maxExamples) break
  }
  return [...found.values()]
}

function compare(before: CompiledPolicy, after: CompiledPolicy, request: DescribedRequest): MilderRequest | undefined {
  const [old, now] = [walk(before, factsOf(request)), walk(after, factsOf(request))]
  if (stricter(old.effect, now.effect) === now.effect) return undefined
  const { method, url } = request.head
  return {
    ...{ method, url, headers: {}, body: new TextDecoder().decode(request.body.bytes), agent: {} },
    ...{ before: old.effect, after: now.effect },
    ...{ ruleBefore: old.last?.rule.name ?? null, ruleAfter: now.last?.rule.name ?? null },
  }
}

/** The conditions of a rule, once for each value of its lists and each member of its groups `any`. */
function variantsOf({ conditions }: Rule): readonly (readonly Node[])[] {
  const variants = conditions.flatMap((node, place) => alternativesOf(node).map(one => conditions.with(place, one)))
  return [conditions, ...variants.slice(0, maxVariants)]
}

const listOperators = ['in', 'pathMatches', 'hostMatches', 'ipIn']

function alternativesOf(node: Node): readonly Node[] {
  if ('any' in node) return node.any
  if (!('field' in node) || !listOperators.includes(node.operator)) return []
  return readWords(node.value).map(word => ({ ...node, value: JSON.stringify([word]) }))
}
