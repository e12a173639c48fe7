import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import { runToEnd } from '../fixtures/process.ts'
import { channel, startSlack, team } from '../fixtures/slack.ts'
import { startMailServer } from '../fixtures/smtp.ts'
import { testdir } from '../fixtures/testdir.ts'

const System = { PublicUrl: 'https://gateway.example' }

t.test('each webhook and e-mail gets a test message, and the command says who accepted it', async t => {
  const [mail, hook] = [await startMailServer(t), await startOrigin(t)]
  const cwd = testdir(t)
  const Email = { Host: '127.0.0.1', Port: mail.port, From: 'gateway@example.com', To: ['rita@example.com'] }
  const Webhooks = [
    { Url: `${hook.url}/a-key`, Format: 'teams' },
    { Url: 'http://127.0.0.1:1/', Format: 'slack' },
  ]
  // YAML has JSON in it.
  writeFileSync(
    join(cwd, 'gateway.yaml'),
    JSON.stringify({ System, HumanInTheLoop: { Webhooks, Email }, Egress: { DenyPrivateNetworks: false } }),
  )
  const [{ code, out, err }, json] = [
    await runToEnd(t, ['hitl', 'test-message'], { cwd }),
    await runToEnd(t, ['hitl', 'test-message', '--json'], { cwd }),
  ]
  t.strictSame([code, out], [1, 'webhook 0: accepted\ne-mail: accepted\n'])
  t.match(err, /^webhook 1: not accepted: 127\.0\.0\.1: .*refused/)
  t.notMatch(out + err, 'a-key')
  t.match(JSON.parse(json.out).receivers, [
    { name: 'webhook 0', ok: true },
    { ok: false },
    { name: 'e-mail', ok: true },
  ])
  t.match(mail.messages[0], 'A test message: nothing waits')
  t.match(hook.seen[0]?.body.toString(), 'A test message: nothing waits')
})

t.test('a channel of the Slack app gets one, with the token of a file that the environment names', async t => {
  const slack = await startSlack(t)
  const cwd = testdir(t)
  const token = join(cwd, 'slack-bot-token')
  writeFileSync(token, 'xoxb-of-the-file\n', { mode: 0o600 })
  const Slack = { Team: team, Channels: [{ Id: channel }, { Id: 'C0OTHER' }], Verdicts: 'none', ApiUrl: slack.apiUrl }
  writeFileSync(join(cwd, 'gateway.yaml'), JSON.stringify({ System, HumanInTheLoop: { Slack } }))
  slack.answers.set('chat.postMessage', ({ channel: to }) =>
    to === channel ? { ok: true, ts: '1.1' } : { ok: false, error: 'not_in_channel' },
  )
  const env = { HUMANINTHELOOP__SLACK__BOTTOKEN__FILE: token }
  const { code, out, err } = await runToEnd(t, ['hitl', 'test-message'], { cwd, env })
  t.strictSame([code, out], [1, `Slack channel ${channel}: accepted\n`])
  t.match(err, 'Slack channel C0OTHER: not accepted: chat.postMessage: not_in_channel')
  t.notMatch(out + err, 'xoxb')
  t.equal(slack.called[0]?.token, 'xoxb-of-the-file')
  t.match(JSON.stringify(slack.called[0]?.args), 'A test message: nothing waits')
})

t.test('the gateway sends pushes, to the browsers that it has', async t => {
  let services: readonly object[] = []
  const gateway = await startOrigin(t, (_, res) => res.end(JSON.stringify({ services })))
  const cwd = testdir(t)
  const config = { System, HumanInTheLoop: { Push: { Enabled: true } } }
  writeFileSync(join(cwd, 'gateway.yaml'), JSON.stringify(config))
  const test = (at: string) =>
    runToEnd(t, ['hitl', 'test-message', '--at', at], { cwd, env: { AGENT_GATEWAY_TOKEN: 'token' } })
  t.match(await test(gateway.url), { code: 1, err: /^Pushes: not accepted: nobody has switched notifications on/ })
  t.match(gateway.seen[0], { method: 'POST', target: '/console/push-test' })
  const down = { name: 'web.push.apple.com', accepted: 0, failure: 'answered 503' }
  services = [{ name: 'fcm.googleapis.com', accepted: 3, failure: null }, down]
  const { code, out, err } = await test(gateway.url)
  t.strictSame([code, out], [1, 'Push service fcm.googleapis.com (3): accepted\n'])
  t.match(err, 'Push service web.push.apple.com (0): not accepted: answered 503')
  t.match(await test('http://127.0.0.1:1'), { code: 1, err: /^Pushes: not accepted: .*127\.0\.0\.1:1/ })
})

t.test('without a receiver the command says what to set', async t => {
  const { code, err } = await runToEnd(t, ['hitl', 'test-message'], { cwd: testdir(t) })
  t.equal(code, 1)
  t.match(err, 'No receiver is set. Add HumanInTheLoop:Webhooks')
})
