/** What an editor begins with when its address says more than a policy: a rule from one request, or a proposal. */
import { call, type Failure } from '../api.ts'
import { make, readSource } from '../make/made.ts'
import { orderOf } from '../make/order.ts'
import { search, setSearch } from '../router.ts'
import type { ProposedPolicy, RuleDraft } from '../types.ts'
import { documentText } from './document.ts'
import { type Draft, draftOf, emptyDraft } from './draft.ts'
import type { DraftTest } from './tests.tsx'

export interface Seed {
  /** The text from that in force, which is empty for a new policy; absent: the same. */
  readonly textFrom?: (text: string) => string
  /**
   * What was typed before with the same in it; undefined where it cannot be added. Absent: what was typed stays as it is,
   * until it is discarded.
   */
  readonly addTo?: (kept: string) => string | undefined
  readonly tests: readonly DraftTest[]
  /** On whose requests it is tried when nobody has the policy yet. */
  readonly agentId?: string | undefined
  /** Header fields that the test leaves out: their values are secret. */
  readonly redacted?: readonly string[]
}

export async function readSeed(): Promise<Seed | Failure> {
  const given = search.peek()
  const agent = given.get('agent') ?? undefined
  if (given.get('make') !== null) return await seedOfRule(given)
  const mode = given.get('propose')
  if (mode !== null && agent !== undefined) return await seedOfProposal(agent, mode)
  if (given.get('request') !== null) return { tests: [{ draft: await draftOf(), wanted: '' }] }
  return { tests: [], agentId: agent }
}

/** It is published: the address asks for nothing more. */
export function forgetSeed(): void {
  setSearch(Object.fromEntries([...search.peek().keys()].map(name => [name, undefined])))
}

async function seedOfRule(given: URLSearchParams): Promise<Seed | Failure> {
  const order = orderOf(given)
  const source = await readSource(order)
  if ('code' in source) return source
  const made = await make(order, source)
  if ('code' in made) return made
  const { draft } = made
  const { agent } = source
  const rule = order.inShadow ? { ...draft.rule, mode: 'shadow' } : draft.rule
  // In shadow it decides nothing, so that what holds now must hold on.
  const wanted = order.inShadow ? draft.decision : order.effect
  const test = testOf(draft)
  return {
    textFrom: text => withRule(text, rule),
    addTo: kept => addRule(kept, rule),
    tests: test === undefined ? [] : [{ draft: { ...test, ...(agent && { agent }) }, wanted: wantedOf(wanted) }],
    agentId: agent?.id,
    redacted: draft.redacted,
  }
}

const wantedOf = (effect: string | null): DraftTest['wanted'] =>
  effect === 'Allow' || effect === 'Deny' || effect === 'Hitl' ? effect : ''

/** The rule behind the others, which priorities rank; in a new policy nothing else is allowed. */
function withRule(text: string, rule: object): string {
  const document: { readonly rules?: readonly object[] } = text === '' ? emptyPolicy : JSON.parse(text)
  return JSON.stringify({ ...document, rules: [...(document.rules ?? []), rule] }, null, 2)
}

/** What was typed may have the rule already. Undefined: it has another one of that name, or is no policy yet. */
function addRule(kept: string, rule: { readonly name?: unknown }): string | undefined {
  try {
    const { rules = [] }: { readonly rules?: readonly { readonly name?: unknown }[] } = JSON.parse(kept)
    const found = rules.find(({ name }) => name === rule.name)
    if (found === undefined) return withRule(kept, rule)
    return JSON.stringify(found) === JSON.stringify(rule) ? kept : undefined
  } catch {
    return undefined
  }
}

const emptyPolicy = { name: 'my-policy', description: '', default: 'Deny' }

function testOf({ request }: Pick<RuleDraft, 'request'>): Draft | undefined {
  if (request === null) return undefined
  const { method = 'GET', url, headers = {}, body = '' } = request
  const lines = Object.entries(headers).flatMap(([name, values]) => [values].flat().map(value => `${name}: ${value}`))
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { ...emptyDraft, method, url, headers: lines.join('\n'), body: text }
}

async function seedOfProposal(agent: string, mode: string): Promise<Seed | Failure> {
  const body = { agentIds: [agent], mode }
  const answer = await call<ProposedPolicy>('POST', '/policies/propose', { body })
  if (!answer.ok) return answer.failure
  return { textFrom: () => documentText(answer.data.policy), tests: [], agentId: agent }
}
