/** T77, grants: a client that has left uses none, and leaves nothing reserved. */
import t from 'tap'
import type { Decided } from '../../../src/pipeline/exchange.ts'
import type { Parts } from '../../../src/pipeline/parts.ts'
import { useGrant } from '../../../src/pipeline/steps/review.ts'

/** What `useGrant` does for a request whose client leaves at a step. */
async function doneFor(leavesAt: 'covers' | 'prepare' | undefined): Promise<readonly string[]> {
  const done: string[] = []
  const exchange = {
    isOver: false,
    method: 'GET',
    req: { rawHeaders: [] },
    fields: { names: [] },
    tokenNames: [],
    target: {},
  }
  const step = (name: string) => {
    done.push(name)
    if (name === leavesAt) exchange.isOver = true
  }
  const grants = {
    async covers() {
      step('covers')
      return true
    },
    async use() {
      step('use')
      return { grant: { id: 'g' }, key: undefined }
    },
  }
  const parts = { grants, config: { Proxy: { Via: false } }, clientIpOf: () => '127.0.0.1' }
  const decided = { ...exchange, decision: { decision: 'Hitl' } }
  Object.defineProperty(decided, 'isOver', { get: () => exchange.isOver })
  const prepare = async () => void step('prepare')
  const used = await useGrant(decided as unknown as Decided, parts as unknown as Parts, prepare)
  return [...done, used === true ? 'passed' : 'refused']
}

t.test('a request reserves its budgets, then uses the grant', async t => {
  t.strictSame(await doneFor(undefined), ['covers', 'prepare', 'use', 'passed'])
})

t.test('T77 one whose client leaves meanwhile reserves nothing more and uses no grant', async t => {
  t.strictSame(await doneFor('covers'), ['covers', 'refused'])
  t.strictSame(await doneFor('prepare'), ['covers', 'prepare', 'refused'])
})
