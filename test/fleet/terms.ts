import t from 'tap'
import { disagreement, type Terms } from '../../src/fleet/terms.ts'

const terms = (name: string, more: Partial<Terms> = {}): Terms => ({
  ...{ name, fenceMs: 10_000, signs: ['tokens a', 'sealing a'], accepts: ['tokens a', 'sealing a'] },
  ...more,
})

t.test('gateways with the same keys and fence agree', async t => {
  t.equal(disagreement(terms('here'), terms('there')), undefined)
})

t.test('each step of a rotation agrees with the one before, and skipping one does not', async t => {
  const both = ['tokens a', 'sealing a', 'tokens b', 'sealing b']
  const old = terms('old')
  const known = terms('known', { accepts: both })
  const renewed = terms('new', { signs: ['tokens b', 'sealing b'], accepts: both })
  for (const [here, there] of [
    [old, known],
    [known, renewed],
  ] as const) {
    t.equal(disagreement(here, there), undefined)
    t.equal(disagreement(there, here), undefined)
  }
  t.match(
    disagreement(renewed, old),
    /^The gateway old does not accept Security:AgentAuth:TokenIssuance:Secret of this/,
  )
  t.match(disagreement(old, renewed), /^This gateway does not accept .*TokenIssuance:Secret of the gateway new\. /)
})

t.test('keys that only seal are distinguished from those that sign', async t => {
  const other = terms('other', { signs: ['tokens a', 'sealing b'], accepts: ['tokens a', 'sealing a', 'sealing b'] })
  t.match(
    disagreement(terms('here'), other),
    /^This gateway does not accept Security:Sealing:Secret of the gateway other/,
  )
})

t.test('the fence must be the same', async t => {
  t.match(
    disagreement(terms('here'), terms('there', { fenceMs: 5_000 })),
    /^Fleet:FenceAfterSeconds is 10 here and 5 in the gateway there\. It must be the same in all of them;/,
  )
})
