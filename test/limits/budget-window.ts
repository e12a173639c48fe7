import t from 'tap'
import { createWindows, type Period } from '../../src/limits/budget-window.ts'

function windowOf(per: Period, zone: string, now: string): readonly string[] {
  const { start, end } = createWindows(per, zone)(Date.parse(now))
  return [new Date(start).toISOString().slice(0, 16), new Date(end).toISOString().slice(0, 16)]
}

const cases: readonly (readonly [Period, string, string, string, string])[] = [
  ['Hour', 'UTC', '2026-03-10T12:34:56Z', '2026-03-10T12:00', '2026-03-10T13:00'],
  ['Hour', 'Asia/Kolkata', '2026-03-10T12:34:56Z', '2026-03-10T12:30', '2026-03-10T13:30'],
  ['Day', 'UTC', '2026-03-10T12:34:56Z', '2026-03-10T00:00', '2026-03-11T00:00'],
  ['Day', 'America/New_York', '2026-01-10T03:00:00Z', '2026-01-09T05:00', '2026-01-10T05:00'],
  // The clocks are changed: days of 23 and of 25 hours.
  ['Day', 'Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-28T23:00', '2026-03-29T22:00'],
  ['Day', 'Europe/Berlin', '2026-10-25T12:00:00Z', '2026-10-24T22:00', '2026-10-25T23:00'],
  // Midnight is left out, and comes twice.
  ['Day', 'America/Sao_Paulo', '2018-11-04T12:00:00Z', '2018-11-04T03:00', '2018-11-05T02:00'],
  ['Day', 'America/Sao_Paulo', '2018-02-18T12:00:00Z', '2018-02-18T03:00', '2018-02-19T03:00'],
  ['Day', 'America/Sao_Paulo', '2018-02-17T12:00:00Z', '2018-02-17T02:00', '2018-02-18T03:00'],
  ['Week', 'UTC', '2026-03-15T23:59:59Z', '2026-03-09T00:00', '2026-03-16T00:00'],
  ['Week', 'Asia/Tokyo', '2026-03-15T15:00:00Z', '2026-03-15T15:00', '2026-03-22T15:00'],
  ['Month', 'UTC', '2026-02-28T23:59:59Z', '2026-02-01T00:00', '2026-03-01T00:00'],
  ['Month', 'UTC', '2028-02-29T01:00:00Z', '2028-02-01T00:00', '2028-03-01T00:00'],
  ['Month', 'Pacific/Auckland', '2026-12-31T12:00:00Z', '2026-12-31T11:00', '2027-01-31T11:00'],
]

for (const [per, zone, now, start, end] of cases) {
  t.test(`${per} in ${zone} at ${now}`, async t => {
    t.strictSame(windowOf(per, zone, now), [start, end])
  })
}

t.test('windows of a year follow each other without a gap', async t => {
  for (const [per, zone] of [
    ['Day', 'Europe/Berlin'],
    ['Day', 'Australia/Lord_Howe'],
    ['Week', 'America/New_York'],
    ['Month', 'America/Sao_Paulo'],
  ] as const) {
    const windowAt = createWindows(per, zone)
    let { start, end } = windowAt(Date.parse('2018-01-15T12:00:00Z'))
    while (end < Date.parse('2019-02-01')) {
      const next = windowAt(end)
      t.equal(next.start, end, `${per} ${zone} ${new Date(start).toISOString()}`)
      ;({ start, end } = next)
    }
  }
})

t.test('a clock that goes back opens no window again', async t => {
  const windowAt = createWindows('Day', 'UTC')
  const today = windowAt(Date.parse('2026-03-10T00:00:01Z'))
  t.equal(windowAt(Date.parse('2026-03-09T23:59:59Z')), today)
  t.not(windowAt(Date.parse('2026-03-11T00:00:00Z')), today)
})
