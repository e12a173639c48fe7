import t from 'tap'
import { checkReceivers } from '../../src/gateway/receivers.ts'
import { testConfig } from '../fixtures/gateway.ts'

t.test('so do Slack, a mail server and a push service', async t => {
  const System = { PublicUrl: 'https://gateway.example' }
  const Slack = { BotToken: 'xoxb-1', Team: 'T0TEAM', Channels: [{ Id: 'C0REVIEW' }], Verdicts: 'none' }
  const Email = { Host: '169.254.169.254', From: 'a@b.example', To: ['c@d.example'] }
  const HumanInTheLoop = { Slack, Email, Push: { Enabled: true, Hosts: ['denied.example', '.apple.example'] } }
  const Egress = { DenyHosts: ['slack.com', 'denied.example', 'apple.example'] }
  const refused = 'Egress refuses this destination. Allow it there, or take another.'
  t.throws(() => checkReceivers(testConfig({ System, Egress, HumanInTheLoop })), {
    name: 'StartupError',
    message: ['Email:Host', 'Slack:ApiUrl', 'Push:Hosts'].map(name => `HumanInTheLoop:${name}: ${refused}`).join('\n'),
  })
  t.doesNotThrow(() =>
    checkReceivers(testConfig({ Egress, HumanInTheLoop: { Slack: { ApiUrl: 'https://slack.com' } } })),
  )
})

t.test('a webhook that Egress refuses without a look-up stops the start', async t => {
  const check = (host: string) =>
    checkReceivers(
      testConfig({
        Egress: { DenyHosts: ['denied.example'] },
        HumanInTheLoop: { Webhooks: [{ Url: `http://${host}/x` }] },
      }),
    )
  for (const host of ['hook.example', '10.0.0.1']) t.doesNotThrow(() => check(host), host)
  const refused = { name: 'StartupError', message: /^HumanInTheLoop:Webhooks\[0\]:Url: Egress refuses/ }
  for (const host of ['denied.example', 'denied.example.', '169.254.169.254', '2852039166', '[fe80::1]']) {
    t.throws(() => check(host), refused, host)
  }
})
