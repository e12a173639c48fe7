/** A secret key behind a name was missed when the border of two pieces of the search was inside the name. */

import t from 'tap'
import { textOf } from '../../src/policy/detectors/bytes.ts'
import { secretSearch } from '../../src/policy/detectors/detectors.ts'
import { Readings } from '../../src/policy/detectors/readings.ts'

t.test('a secret key is found wherever the pieces of the search end', async t => {
  const name = `${'a'.repeat(20)}.aws_secret_access_key`
  const missed: number[] = []
  for (let before = 0; before < 400; before++) {
    const text = textOf(`${'. '.repeat(before)}${name}"${'A'.repeat(40)}"`)
    const scan = secretSearch.begin(new Readings(text))
    while (!scan.advance({ left: 6 }));
    if (scan.id !== 'aws-secret-key') missed.push(before)
  }
  t.strictSame(missed, [], 'numbers of words before the key')
})
