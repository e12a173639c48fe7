import t from 'tap'
import { inspectionFindings } from '../../../src/cli/doctor/database.ts'

const sound = { aheadMs: 0, roundTripMs: 2, missing: [], migrates: true, mayCreate: true, lacks: [] }
const of = (seen: object) => inspectionFindings({ ...sound, ...seen }, 'gateway')

t.test(
  'a clock that differs by a second is a warning, by a minute a failure, less the time of the question',
  async t => {
    t.match(of({ aheadMs: 1_001 }), [{ level: 'ok', text: /1001 ms ahead of/ }, { level: 'ok' }])
    t.match(of({ aheadMs: -1_003 }), [
      { level: 'warn', text: /1003 ms behind/, remedy: /time server/ },
      { level: 'ok' },
    ])
    t.match(of({ aheadMs: 60_003 }), [{ level: 'fail' }, { level: 'ok' }])
  },
)

t.test('a schema that the next start mends is in order, another one fails', async t => {
  const missing = ['0001-schema', '0002-more']
  t.match(of({ missing })[1], {
    level: 'ok',
    text: 'the schema gateway lacks 0001-schema, 0002-more: the next start brings it up to date',
  })
  for (const closed of [{ mayCreate: false }, { migrates: false }]) {
    t.match(of({ missing, ...closed })[1], { level: 'fail', remedy: /storage migrate as the owner/ })
  }
})

t.test('rights that its user lacks fail', async t => {
  t.match(of({ lacks: ['insert agents', 'select tokens'] })[1], {
    ...{ level: 'fail', text: 'its user may not insert agents; select tokens', remedy: /AGENT_GATEWAY_STORAGE_OWNER/ },
  })
})
