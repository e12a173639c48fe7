import t from 'tap'
import { withoutEchoes } from '../../src/credentials/placement.ts'

t.test('the fields of an answer are without the values that were sent, plain and encoded', async t => {
  const sent = (value: string) => ({ sent: { value } })
  const added = [sent('a secret/key'), { sent: undefined }, sent('tiny'), sent('another-one')]
  const given = [
    'A',
    'got a secret/key',
    'B',
    'u=a%20secret%2Fkey&a secret/key',
    'C',
    'tiny',
    'D',
    'another-one, a secret/key',
    'E',
    'https://a.example/?key=a%20secret%2fkey',
    'F',
    'a+secret%2Fkey',
    'G',
    '%61 secret/k%65y %zz',
  ]
  const { fields, echoes } = withoutEchoes(given, added)
  t.strictSame(
    fields.filter((_, at) => at % 2 === 1),
    ['got [redacted]', 'u=[redacted]&[redacted]', 'tiny', '[redacted], [redacted]', ...Array(3).fill('[redacted]')],
  )
  t.equal(echoes, 6)
  const clean = ['A', '100 % of nothing to hide', 'B', 'x', 'C', 'application/problem+json']
  t.strictSame(withoutEchoes(clean, added), { fields: clean, echoes: 0 })
  t.equal(withoutEchoes(clean, added).fields, clean, 'the same array')
})
