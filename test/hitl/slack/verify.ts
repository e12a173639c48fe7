/** Signatures of Slack, with the example that Slack publishes ("Verifying requests from Slack"). */
import t from 'tap'
import { createSlackCheck } from '../../../src/hitl/slack/verify.ts'

const secret = '8f742231b10e8888abcd99yyyzzz85a5'
const timestamp = '1531420618'
const text =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
const signature = 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503'
const call = { signature, timestamp, body: Buffer.from(text) }
const at = Number(timestamp) * 1_000
const check = (now = at) => createSlackCheck(secret, { now: () => now })

t.test('the example that Slack publishes is taken once', async t => {
  const isSlack = check()
  t.equal(isSlack(call), true)
  t.equal(isSlack(call), false, 'a repetition is refused')
  t.equal(check()({ ...call, signature: signature.toUpperCase() }), false)
})

t.test('T81 with any byte changed it is refused', async t => {
  const isSlack = check()
  const accepted: number[] = []
  for (let index = 0; index < call.body.length; index++) {
    const body = Buffer.from(call.body)
    body[index]! ^= 1
    if (isSlack({ ...call, body })) accepted.push(index)
  }
  for (let index = 0; index < signature.length; index++) {
    const other = `${signature.slice(0, index)}${signature[index] === '0' ? '1' : '0'}${signature.slice(index + 1)}`
    if (isSlack({ ...call, signature: other })) accepted.push(index)
  }
  t.strictSame(accepted, [])
  for (const body of [Buffer.from(`${text} `), call.body.subarray(1), Buffer.alloc(0)]) {
    t.equal(isSlack({ ...call, body }), false)
  }
  t.equal(isSlack(call), true, 'none of them spoils the right one')
})

t.test('T81 five minutes are the most by which the times may differ', async t => {
  for (const [seconds, isTaken] of [
    [300, true],
    [-300, true],
    [301, false],
    [-301, false],
  ] as const) {
    t.equal(check(at + seconds * 1_000)(call), isTaken, String(seconds))
  }
  for (const other of [undefined, '', 'x', '1531420618.0', '1e9', '-1531420618', '1531420619']) {
    t.equal(check()({ ...call, timestamp: other }), false, String(other))
  }
  t.equal(check()({ ...call, signature: undefined }), false)
})
