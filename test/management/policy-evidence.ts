/** Saving a policy waits for its evidence a moment at most, and never fails for want of it. Threat T90. */
import { mock } from 'node:test'
import t from 'tap'
import { refuse } from '../../src/base/refusals.ts'
import type { ManagementCall } from '../../src/management/call.ts'
import type { ManagementParts } from '../../src/management/parts.ts'
import { policyHandlers } from '../../src/management/policies.ts'
import type { PolicyEditor } from '../../src/policies/edit.ts'
import { formatPolicy } from '../../src/policy/language/format.ts'
import { parsePolicy } from '../../src/policy/language/parse.ts'

const id = '00000000-0000-4000-8000-000000000001'
const evidence = [{ rule: 'r', count: 1, days: 1, firstAt: null, lastAt: null, shapes: [] }]
const rules = [{ name: 'r', effect: 'Allow', conditions: [{ field: 'agent.id', operator: 'eq', value: id }] }]

/** The evidence with which a policy is replaced. */
async function savedWith(body: object, run: () => Promise<unknown>) {
  let saved: PolicyEditor['evidence']
  const parts = {
    recording: { isOn: true, of: async () => ({ shapes: [], incompleteSince: null }) },
    registry: { get: () => ({ id, policyName: null, tags: {} }) },
    policyWork: { run },
    language: {},
    book: {
      entry: () => undefined,
      async check(document: unknown) {
        const parsed = parsePolicy(document)
        return 'policy' in parsed ? { document: formatPolicy(parsed.policy) } : refuse('invalid_policy')
      },
      async replace(_name: string, _document: object, by: PolicyEditor) {
        saved = by.evidence
        return refuse('not_found')
      },
    },
  } as unknown as ManagementParts
  const call = {
    ...{ body, named: 'p', query: {}, req: { headers: {} }, requestId: 'x', caller: { agent: { id } } },
    ...{ left: new AbortController().signal, problemNow: () => undefined },
  } as unknown as ManagementCall
  await policyHandlers(parts)['replacePolicy']?.(call)
  return saved && Object.fromEntries(saved)
}

t.test('a policy has evidence however its name is written', async t => {
  for (const body of [{ rules }, { name: 'p', rules }, { Name: 'p', Rules: rules }])
    t.strictSame(await savedWith(body, async () => evidence), { p: evidence })
})

t.test('a thread that dies, is busy or takes long keeps no policy from being saved', async t => {
  const dies = async () => {
    throw new Error('the thread has died')
  }
  t.strictSame(await savedWith({ rules }, dies), { p: null })
  t.strictSame(await savedWith({ rules }, async () => refuse('busy')), { p: null })
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const hangs = () => {
    setImmediate(() => mock.timers.tick(10_000))
    return new Promise(() => {})
  }
  t.strictSame(await savedWith({ rules }, hangs), { p: null })
})
