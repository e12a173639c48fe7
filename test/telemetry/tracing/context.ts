import fc from 'fast-check'
import t from 'tap'
import { parseTraceparent } from '../../../src/telemetry/tracing/context.ts'

const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']

t.test('a valid traceparent has ids and a flag', async t => {
  t.strictSame(parseTraceparent(`00-${traceId}-${spanId}-01`), { traceId, spanId, isSampled: true })
  t.equal(parseTraceparent(`00-${traceId}-${spanId}-02`)?.isSampled, false)
  t.equal(parseTraceparent(`cc-${traceId}-${spanId}-03-more`)?.isSampled, true, 'a later version')
})

/** Reads as section 3.2.2 of the specification says, character by character. */
function naive(value: string): boolean {
  const parts = value.split('-')
  const [version = '', trace = '', span = '', flags = ''] = parts
  const isHex = (text: string, length: number) =>
    text.length === length && [...text].every(char => '0123456789abcdef'.includes(char))
  const isZero = (text: string) => [...text].every(char => char === '0')
  if (!isHex(version, 2) || version === 'ff') return false
  if (version === '00' && parts.length !== 4) return false
  return isHex(trace, 32) && isHex(span, 16) && isHex(flags, 2) && !isZero(trace) && !isZero(span)
}

t.test('T85: every other text is read as the specification reads it', async t => {
  const digits = (length: number) =>
    fc.oneof(
      fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length }),
      fc.constantFrom('0'.repeat(length), 'A'.repeat(length), '', 'g'.repeat(length), '0'.repeat(length + 1)),
    )
  const version = fc.constantFrom('00', '01', 'ff', 'FF', '0', 'zz')
  const text = fc
    .tuple(version, digits(32), digits(16), digits(2), fc.constantFrom('', '-', '-x', ' '))
    .map(([first, trace, span, flags, rest]) => `${first}-${trace}-${span}-${flags}${rest}`)
  fc.assert(fc.property(fc.oneof(text, fc.string()), value => (parseTraceparent(value) !== undefined) === naive(value)))
  t.pass()
})
