import t from 'tap'
import { compareNumeric, LongNumber, type Numeric, parseNumeric } from '../../../src/policy/values/numbers.ts'

const order = (left: string, right: string) =>
  Math.sign(compareNumeric(parseNumeric(left) as Numeric, parseNumeric(right) as Numeric))

t.test('only JSON numbers are numbers', async t => {
  for (const text of ['0', '-0', '10', '-1.5', '1e3', '1E+3', '0.10', '123456789012345678901234567890']) {
    t.not(parseNumeric(text), undefined, text)
  }
  for (const text of ['', ' 1', '+1', '01', '.5', '1.', '0x1', '1e', 'NaN', 'Infinity', '-', '1_000', '１']) {
    t.equal(parseNumeric(text), undefined, text)
  }
})

t.test('numbers that a double would round stay apart', async t => {
  t.equal(order('9007199254740993', '9007199254740992'), 1)
  t.equal(order('9007199254740993', '9007199254740993.0'), 0)
  t.equal(order('0.1000000000000000055511151231257827', '0.1'), 1)
  t.equal(order('-9007199254740993', '-9007199254740992'), -1)
})

t.test('numbers out of the range of a double stay finite', async t => {
  t.equal(order('1e400', '1e401'), -1)
  t.equal(order('1e400', '999999'), 1)
  t.equal(order('-1e400', '0'), -1)
  t.equal(order('1e-400', '0'), 1)
  t.equal(order('0e400', '0'), 0)
})

t.test('spelling does not matter', async t => {
  t.equal(order('100', '1e2'), 0)
  t.equal(order('0.00100', '1e-3'), 0)
  t.equal(order('12345678901234567890', '1.2345678901234567890e19'), 0)
  t.equal(order('-0', '0'), 0)
})

t.test('a long number is shown as it was written', async t => {
  const long = parseNumeric('9007199254740993') as LongNumber
  t.ok(long instanceof LongNumber)
  t.equal(String(long), '9007199254740993')
  t.equal(JSON.stringify({ long }), '{"long":"9007199254740993"}')
})

t.test('zeros inside a long number take a time that grows with their number, not with its square', async t => {
  const zeros = '0'.repeat(1_000_000)
  t.equal(order(`1${zeros}1`, `1${zeros}2`), -1)
  t.equal(order(`0.${zeros}10${zeros}`, `0.${zeros}1`), 0)
  t.equal(order(`1${zeros}`, '1e1000000'), 0)
})
