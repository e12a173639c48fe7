/** T77, grants: a client that has left uses none, and leaves nothing reserved. */
import t from 'tap'
import type { Decided } from '../../../src/pipeline/exchange.ts'
import type { Parts } from '../../../src/pipeline/parts.ts'
import { forgetGrant } from '../../../src/pipeline/rights.ts'
import { checkKey, releaseUse, useGrant } from '../../../src/pipeline/steps/review.ts'

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

/** A request that begins again after a grant has let it pass, and what is asked of grants. */
function openUsed(answer: () => object | undefined) {
  const asked: unknown[] = []
  const [grant, key] = [
    { id: 'g', uses: 1 },
    { agentId: 'a', key: 'k', expiresAt: 1 },
  ]
  const exchange = {
    ...{ isOver: false, method: 'GET', req: { rawHeaders: [] }, tokenNames: [], target: {}, agent: { id: 'a' } },
    fields: { names: [], idempotencyKey: 'k' },
    ...{ decision: { decision: 'Hitl' }, effect: 'Hitl', grantId: 'g', usedGrant: grant, unsentUse: { grant, key } },
  }
  const parts = {
    grants: {
      use: async (_: unknown, before: unknown) => {
        asked.push(before)
        return answer()
      },
      giveBack: async (freed: unknown) => void asked.push({ freed }),
    },
    queue: { checkKey: async () => void asked.push('checked') },
    watch: { underway: (isMeant: (one: object) => boolean) => [exchange].filter(isMeant) },
    ...{ config: { Proxy: { Via: false } }, clientIpOf: () => '127.0.0.1' },
  }
  return { ...{ asked, grant, key, parts: parts as unknown as Parts }, exchange: exchange as unknown as Decided }
}

t.test('a request that begins again keeps its use of a grant, unless that is withdrawn meanwhile', async t => {
  for (const isWithdrawn of [false, true]) {
    const { asked, exchange, grant, key, parts } = openUsed(() => {
      if (isWithdrawn) forgetGrant('g', parts)
      return { grant, key }
    })
    t.equal(await useGrant(exchange, parts, undefined), true)
    t.strictSame(asked, [{ grant, unsent: { grant, key } }])
    t.strictSame([exchange.grantId, exchange.unsentUse], ['g', { grant, key }])
    t.equal(exchange.usedGrant, isWithdrawn ? undefined : grant)
  }
})

t.test('what was sent once is not given back, but another use of another grant is', async t => {
  for (const [id, given] of [
    ['g', []],
    ['other', [{ freed: { grant: { id: 'other' }, key: undefined } }]],
  ] as const) {
    const { asked, exchange, parts } = openUsed(() => ({ grant: { id }, key: undefined }))
    exchange.unsentUse = undefined
    t.equal(await useGrant(exchange, parts, undefined), true)
    releaseUse(exchange, parts)
    t.strictSame(asked.slice(1), given, id)
  }
})

t.test('one that no grant lets pass any more, or nobody need review, gives its use back', async t => {
  const asks = openUsed(() => undefined)
  Object.assign(asks.parts.grants, { covers: async () => true })
  t.equal(await useGrant(asks.exchange, asks.parts, () => 'asks'), false)
  t.strictSame(asks.asked, [{ freed: { grant: asks.grant, key: asks.key } }])
  const { asked, exchange, grant, key, parts } = openUsed(() => undefined)
  exchange.effect = 'Allow'
  await checkKey(exchange, parts)
  t.strictSame([asked, exchange.unsentUse], [[{ freed: { grant, key } }, 'checked'], undefined])
})
