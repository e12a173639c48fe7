import t from 'tap'
import { isTimeZone, Zone } from '../../../../src/policy/language/fields/zone.ts'

t.test('wall time follows the zone, over changes of the clock', async t => {
  const berlin = new Zone('Europe/Berlin')
  const at = (time: string) => berlin.at(Date.parse(time)).clock
  t.equal(at('2026-03-29T00:59:59Z'), '01:59')
  t.equal(at('2026-03-29T01:00:00Z'), '03:00', 'an hour is left out')
  t.equal(at('2026-10-25T00:59:00Z'), '02:59')
  t.equal(at('2026-10-25T01:00:00Z'), '02:00', 'an hour comes twice')
  t.equal(at('2026-01-05T10:00:00Z'), '11:00', 'and back to an earlier time')
})

t.test('zones with odd offsets have all their parts right', async t => {
  t.match(new Zone('Asia/Kolkata').at(Date.parse('2026-01-05T20:00:00Z')), {
    ...{ now: '2026-01-06T01:30:00+05:30', date: '2026-01-06', clock: '01:30', hour: 1, dayOfWeek: 'tue' },
  })
  t.match(new Zone('America/New_York').at(Date.parse('2026-01-01T02:00:00Z')), { now: '2025-12-31T21:00:00-05:00' })
  t.match(new Zone('UTC').at(0), { now: '1970-01-01T00:00:00Z', dayOfWeek: 'thu' })
})

t.test('only zones that exist are zones', async t => {
  t.ok(isTimeZone('UTC'))
  t.ok(isTimeZone('Europe/Berlin'))
  t.notOk(isTimeZone('Mars/Base'))
  t.notOk(isTimeZone(''))
})
