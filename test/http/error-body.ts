import t from 'tap'
import { refuse } from '../../src/base/refusals.ts'
import { type ErrorFormat, reasonPhrase, refusalBody } from '../../src/http/error-body.ts'

const refusal = refuse('policy_denied', 'Closed on Sundays & <b>holidays</b>\r\n')
const sent = (format: ErrorFormat, given = refusal) => refusalBody([], given, { requestId: 'r-1', format })

t.test('clients of S3, and of services of AWS that take forms, get the XML that they read', async t => {
  const error =
    '<Code>policy_denied</Code><Message>Closed on Sundays &#38; &#60;b&#62;holidays&#60;/b&#62;\\u{d}\\u{a}</Message>'
  const id = '<RequestId>r-1</RequestId>'
  const begin = '<?xml version="1.0" encoding="UTF-8"?>\n'
  t.strictSame(sent('s3'), { type: 'application/xml', body: `${begin}<Error>${error}${id}</Error>\n` })
  t.strictSame(sent('query'), {
    type: 'application/xml',
    body: `${begin}<ErrorResponse><Error><Type>Sender</Type>${error}</Error>${id}</ErrorResponse>\n`,
  })
  t.equal(sent('s3', refuse('unauthenticated')).type, 'application/xml')
})

t.test('clients of registries of images get a list of errors', async t => {
  const { type, body } = sent('registry', refuse('policy_denied', 'Closed on Sundays'))
  t.equal(type, 'application/json')
  t.match(JSON.parse(body), {
    code: 'policy_denied',
    errors: [{ code: 'POLICY_DENIED', message: 'Closed on Sundays' }],
  })
  const { errors } = JSON.parse(sent('registry', refuse('unauthenticated')).body)
  t.match(errors, [{ code: 'UNAUTHORIZED' }], 'clients ask for a key when they know the code')
})

t.test('T20 a reason phrase is one short line of ASCII', async t => {
  t.equal(reasonPhrase(refuse('policy_denied', 'Closed on Sundays')), 'Denied by policy: Closed on Sundays')
  t.equal(reasonPhrase(refuse('policy_denied', 'a\r\nSet-Cookie: é')), 'Denied by policy: a\\u{d}\\u{a}Set-Cookie: ?')
  const long = reasonPhrase(refuse('policy_denied', 'x'.repeat(1_000)))
  t.match([long.length, long.slice(-4)], [200, 'x...'])
})
