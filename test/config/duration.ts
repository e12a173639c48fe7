import fc from 'fast-check'
import t from 'tap'
import { formatSetting, formatTimespan, parseTimespan } from '../../src/config/duration.ts'

t.test('time spans are read as hours, minutes and seconds, with days and fractions where given', async t => {
  const cases: [string, number | undefined][] = [
    ['00:15:00', 900_000],
    ['0:0:1', 1_000],
    ['1.00:00:00', 86_400_000],
    ['10.23:59:59', 10 * 86_400_000 + 86_399_000],
    ['00:00:00.5', 500],
    ['00:00:00.0010000', 1],
  ]
  for (const [text, milliseconds] of cases) t.equal(parseTimespan(text), milliseconds, text)
})

t.test('what is no time span is not read', async t => {
  const wrong = ['', '15', '00:15', '24:00:00', '00:60:00', '00:00:60', '-00:00:01', '1:00:00:00', '00:00:01 ', 'PT15M']
  for (const text of wrong) t.equal(parseTimespan(text), undefined, text)
})

t.test('durations are written as d.HH:mm:ss.fffffff', async t => {
  const cases: [number, string][] = [
    [0, '0.00:00:00.0000000'],
    [1.2345, '0.00:00:00.0012345'],
    [999.99999, '0.00:00:01.0000000'],
    [61_001, '0.00:01:01.0010000'],
    [90_061_000, '1.01:01:01.0000000'],
  ]
  for (const [milliseconds, text] of cases) t.equal(formatTimespan(milliseconds), text)
})

t.test('a setting is written without the parts that are zero', async t => {
  t.equal(formatSetting(900_000), '00:15:00')
  t.equal(formatSetting(86_400_000), '1.00:00:00')
  t.equal(formatSetting(1_500), '00:00:01.5000000')
})

t.test('what is written is read back', async t => {
  const anySpan = fc.integer({ min: 0, max: 400 * 86_400_000 })
  fc.assert(
    fc.property(
      anySpan,
      span => parseTimespan(formatTimespan(span)) === span && parseTimespan(formatSetting(span)) === span,
    ),
  )
  t.pass('holds')
})
