/** A decision worked out its texts when somebody read them, and kept the body and what was parsed of it for that. */

import t from 'tap'
import { decideHead } from '../../src/policy/evaluation/decide.ts'
import type { Decision } from '../../src/policy/evaluation/decision.ts'
import { decideBody } from '../fixtures/decide.ts'
import { megabytesInUse } from '../fixtures/memory.ts'
import { described, rulebookOf } from '../fixtures/rulebook.ts'

const deny = (name: string, field: string, operator: string, value: string) => ({
  name,
  effect: 'Deny',
  conditions: [{ field, operator, value }],
})
const rulebook = rulebookOf({
  name: 'p',
  default: 'Allow',
  rules: [
    deny('text', 'input.bodyText', 'contains', 'needle'),
    deny('member', 'input.body.note', 'startsWith', 'long'),
  ],
})

function decide(body: unknown): Decision {
  const request = described({ request: { method: 'POST', url: 'https://a.example/', body } })
  const first = decideHead(rulebook, request.head)
  return 'need' in first ? decideBody(rulebook, request.head, first, request.body) : first
}

t.test('a decision that quotes a body, or was made on one, keeps nothing of it in memory', async t => {
  const filler = 'x'.repeat(300_000)
  const bodies: [string, (index: number) => unknown, string][] = [
    ['text', index => `needle ${index} ${filler}`, 'Deny'],
    ['a long member', index => ({ note: `long ${index} ${filler}` }), 'Deny'],
    ['a short member', index => ({ filler, note: `long ${index} enough to be a piece of the whole` }), 'Deny'],
    ['nothing', index => ({ filler, hay: index }), 'Allow'],
  ]
  for (const [name, body, wanted] of bodies) {
    const before = megabytesInUse()
    const kept = Array.from({ length: 30 }, (_, index) => decide(body(index)))
    const grown = megabytesInUse() - before
    t.equal(kept[0]?.decision, wanted)
    t.ok(grown < 3, `${name}: ${grown.toFixed(1)} MB for 30 decisions`)
  }
})
