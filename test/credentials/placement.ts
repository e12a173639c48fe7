import t from 'tap'
import { secretsIn, withoutEchoes } from '../../src/credentials/placement.ts'

t.test('the fields of an answer are without the values that were sent, plain and encoded', async t => {
  const sent = (value: string) => ({ sent: { secrets: [value] } })
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

t.test('an answer shows neither what stands behind a scheme nor one of several cookies', async t => {
  const answer = ['A', 'key-of-the-shop', 'Set-Cookie', 'sid=0123456789; Path=/', 'B', 'Bearer']
  const shown = (name: string, prefix: string, value: string) => {
    const secrets = secretsIn({ header: name, query: undefined }, prefix, value)
    return withoutEchoes(answer, [{ sent: { secrets } }]).fields.filter((_, at) => at % 2 === 1)
  }
  const hidden = ['[redacted]', answer[3], 'Bearer']
  for (const scheme of ['', 'Bearer ', 'token ', 'Basic '])
    t.strictSame(shown('Authorization', '', `${scheme}key-of-the-shop`), hidden, scheme)
  t.strictSame(shown('Authorization', 'Bearer ', 'key-of-the-shop'), hidden)
  t.strictSame(shown('X-Key', '', 'key-of-the-shop'), hidden)
  const withoutCookie = [answer[1], 'sid=[redacted]; Path=/', 'Bearer']
  t.strictSame(shown('Cookie', '', 'theme=1; sid=0123456789'), withoutCookie)
  t.strictSame(shown('Cookie', 'sid=', '0123456789'), withoutCookie)
  t.strictSame(shown('Cookie', '', 'sid=0123456789 ; theme=1'), withoutCookie)
  const short = (name: string, value: string) => {
    const secrets = secretsIn({ header: name, query: undefined }, '', value)
    return withoutEchoes(['A', `it was ${value}`], [{ sent: { secrets } }]).fields[1]
  }
  t.equal(short('Authorization', 'Bearer 1234567'), 'it was [redacted]')
  t.equal(short('Cookie', 'a=1234567; b=7654321'), 'it was [redacted]')
  t.strictSame(secretsIn({ header: 'Authorization', query: 'key' }, '', 'two words'), ['two words'])
})
