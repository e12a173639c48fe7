import t from 'tap'
import { foldName, isDisguised } from '../../src/base/field-names.ts'

t.test('a name folds as servers fold it that know letters and digits alone', async t => {
  const folded = { Transfer___Encoding: 'transfer-encoding', '_Host.': 'host', "a'b*c": 'a-b-c', '~': '', 'X-A': 'x-a' }
  for (const [name, expected] of Object.entries(folded)) t.equal(foldName(name), expected, name)
})

t.test('a name that folds to a framing or gateway field is disguised; the field itself is not', async t => {
  const disguised =
    'transfer_encoding content.length transfer---encoding host_ te~ gateway_authorization gateway.x via!'
  for (const name of disguised.split(' ')) t.ok(isDisguised(name), name)
  const plain = 'transfer-encoding content-length host te gateway-authorization x_request_id __proto__ ~ gateway'
  for (const name of plain.split(' ')) t.notOk(isDisguised(name), name)
})
