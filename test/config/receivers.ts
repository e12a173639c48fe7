/** What settings of receivers must be together. */
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'

const problems = (HumanInTheLoop: object) =>
  problemsOf({ System: { PublicUrl: 'https://gateway.example' }, HumanInTheLoop })

function problemsOf(config: object): readonly string[] {
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text: JSON.stringify(config) }, env: {} })
  return 'problems' in loaded ? loaded.problems.map(({ message }) => message) : []
}

t.test('e-mail needs a sender and receivers, and a name together with its password', async t => {
  const mail = { Host: 'mail.example', From: 'a@b.example', To: ['c@d.example'] }
  t.strictSame(problems({ Email: mail }), [])
  t.match(problems({ Email: { ...mail, From: undefined } }), [/From and To must be set/])
  t.match(problems({ Email: { ...mail, To: [] } }), [/From and To must be set/])
  t.match(problems({ Email: { ...mail, User: 'u' } }), [/User and Password belong together/])
  t.match(problems({ Email: { ...mail, Password: 'p' } }), [/User and Password belong together/])
})

t.test('a Slack app names its team, its channels once, and one way for clicks', async t => {
  const app = { BotToken: 'xoxb-1', AppToken: 'xapp-1', Team: 'T0123', Channels: [{ Id: 'C0123' }] }
  const of = (more: object) => problems({ Slack: { ...app, ...more } })
  t.strictSame(of({}), [])
  t.strictSame(of({ AppToken: undefined, Verdicts: 'none' }), [], 'messages alone')
  t.match(of({ BotToken: undefined }), [/must be set for a Slack app/])
  t.match(of({ Team: undefined }), [/Team and the Id of each channel must be set/])
  t.match(of({ Channels: [] }), [/Team and the Id of each channel must be set/])
  t.match(of({ Channels: [{}] }), [/Team and the Id of each channel must be set/])
  t.match(of({ Channels: [{ Id: 'C0123' }, { Id: 'C0123' }] }), [/each channel must be named once/])
  t.match(of({ SigningSecret: 'a-signing-secret-of-slack-01' }), [/not both/])
  t.match(of({ AppToken: undefined, Verdicts: 'deny' }), [/must be set for Verdicts/])
  t.match(of({ ApiUrl: 'http://slack.example/api' }), [/ApiUrl must be an https URL/])
  t.strictSame(of({ ApiUrl: 'http://127.0.0.1:1/api' }), [])
})

t.test('each service has the key that it needs, and no other', async t => {
  const of = (hook: object) => problems({ Webhooks: [{ Url: 'https://hooks.example/a', ...hook }] })
  t.strictSame(of({}), [])
  t.match(of({ Format: 'pagerDuty' }), [/Key must be set: the integration key of PagerDuty/])
  t.match(of({ Format: 'teams', Key: 'k' }), [/Key is not used by the format teams/])
  t.strictSame(of({ Format: 'ntfy', Key: 'k' }), [])
  t.match(of({ Format: 'ntfy', Url: 'https://ntfy.example/a/b' }), [/Url must end with the topic/])
})

t.test('mails and messages of Slack need the address of the console', async t => {
  const Email = { Host: 'mail.example', From: 'a@b.example', To: ['c@d.example'] }
  const Slack = { BotToken: 'xoxb-1', Team: 'T0123', Channels: [{ Id: 'C0123' }], Verdicts: 'none' }
  for (const HumanInTheLoop of [{ Email }, { Slack }]) {
    t.match(problemsOf({ HumanInTheLoop }), [/must be set: messages to reviewers link to the console/])
    t.strictSame(problems(HumanInTheLoop), [])
  }
})

t.test('pushes need an https address of the console, and each service once', async t => {
  const Push = { Enabled: true }
  t.strictSame(problems({ Push }), [])
  t.match(problems({ Push: { ...Push, Hosts: ['a.example', 'a.example'] } }), [/must be named once/])
  const HumanInTheLoop = { Push }
  t.match(problemsOf({ HumanInTheLoop }), [/must be set for Web Push/])
  t.match(problemsOf({ HumanInTheLoop, System: { PublicUrl: 'http://gateway.example' } }), [/must be an https URL/])
  t.strictSame(problemsOf({ HumanInTheLoop, System: { PublicUrl: 'http://127.0.0.1' } }), [])
  const Management = { Enabled: true, Port: 1, PublicUrl: 'http://console.example' }
  const System = { PublicUrl: 'https://gateway.example', Server: { Management } }
  t.match(problemsOf({ HumanInTheLoop, System }), [/must be an https URL/], 'where the console is')
})
