/** Two gateways on one database with the same Slack app: each click counts once, whichever of them it reaches. Threat T81. */
import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, merge, onDatabase, startGateway } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { careful, startReview } from '../fixtures/review.ts'
import {
  buttonOf,
  channel,
  pressed,
  type SlackCalled,
  signedCall,
  signingSecret,
  startSlack,
  submitted,
  team,
} from '../fixtures/slack.ts'

const slack = await startSlack(t)
const isPost = { field: 'input.method', operator: 'eq', value: 'POST' }
const rule = { name: 'posts', effect: 'Hitl', chatApproval: true, chatFields: ['input.method'], conditions: [isPost] }
const chat = { name: 'chat', default: 'Deny', rules: [rule] }
const config = merge(onDatabase(await createSchema(t)), {
  System: { PublicUrl: 'https://gateway.example' },
  Policies: [chat],
  HumanInTheLoop: {
    Slack: {
      ...{ BotToken: 'xoxb-1', SigningSecret: signingSecret, Team: team, ApiUrl: slack.apiUrl, Verdicts: 'rules' },
      Channels: [{ Id: channel }],
    },
  },
})
const alone = 'the test has two gateways'
const a = await startReview(t, { alone, config })
const b = await startGateway(t, {
  alone,
  config: { ...config, Policies: [{ name: 'allow-all', default: 'Allow' }, careful, chat] },
})
const bot = await a.agent({ policyName: 'chat' })
const [ada, eve] = [await a.newReviewer({ name: 'Ada One' }), await a.newReviewer({ name: 'Eve Two' })]
const people = { U0ADA: { ...ada, name: 'Ada One' }, U0EVE: { ...eve, name: 'Eve Two' } } as const
for (const [user, { id }] of Object.entries(people)) {
  await a.manage('PUT', `/agents/${id}/identities`, { identities: [{ provider: 'slack', team, user }] })
}

type User = keyof typeof people
const post = ({ url }: { readonly url: string }, payload: object) => {
  const { body, headers } = signedCall(payload, { at: Date.now() })
  return fetchDocumented(`${url}/hitl/slack`, { method: 'POST', headers, body })
}
const called = (method: string, of: (call: SlackCalled) => boolean) =>
  slack.called.filter(one => one.method === method && of(one))
const first = (method: string, of: (call: SlackCalled) => boolean) =>
  eventually(
    () => called(method, of)[0],
    found => found !== undefined,
  )
const messageOf = async (id: string) =>
  (await first('chat.postMessage', ({ args }) => JSON.stringify(args).includes(id)))!
const editsOf = ({ ts }: SlackCalled) => called('chat.update', ({ args }) => args['ts'] === ts)
/** The form that a press of this user opens, at this gateway. */
async function formOf(gateway: { readonly url: string }, user: User, message: SlackCalled, verdict: string) {
  const before = slack.called.length
  await post(gateway, pressed(user, { ts: message.ts ?? '' }, buttonOf(message, verdict)))
  const opened = await eventually(
    () => slack.called.slice(before).find(({ method }) => method === 'views.open'),
    found => found !== undefined,
  )
  return opened!.args['view']
}
const verdictsOf = async (id: string) => {
  const { text } = await a.manage('GET', `/audit?subject=${id}`)
  const items: readonly { readonly action: string; readonly actor: string }[] = JSON.parse(text).items
  return items.filter(({ action }) => action === 'hitl.approve' || action === 'hitl.deny')
}
/** What the last edit of the message says, once it is of an end. */
const end = async (message: SlackCalled) =>
  (
    await eventually(
      () => editsOf(message),
      list => /Denied|answered/.test(list.at(-1)?.args['text']),
    )
  ).at(-1)?.args['text'] as string

t.test(
  'T81 two people who deny at two gateways give one verdict, and the message is edited once with its name',
  async t => {
    const messages: SlackCalled[] = []
    for (let round = 0; round < 3; round++) {
      const id = await a.hold('/refunds', { bot })
      const message = await messageOf(id)
      messages.push(message)
      const forms = {
        U0ADA: await formOf(a, 'U0ADA', message, 'deny'),
        U0EVE: await formOf(b, 'U0EVE', message, 'deny'),
      }
      const before = called('chat.postEphemeral', () => true).length
      await Promise.all([
        post(a, submitted('U0ADA', forms.U0ADA, 'comment', 'no')),
        post(b, submitted('U0EVE', forms.U0EVE, 'comment', 'no')),
      ])
      const told = await eventually(
        () => called('chat.postEphemeral', () => true)[before],
        found => found !== undefined,
      )
      const winner: User = told?.args['user'] === 'U0ADA' ? 'U0EVE' : 'U0ADA'
      t.match(await end(message), `Denied by ${people[winner].name}`)
      t.match(await verdictsOf(id), [{ action: 'hitl.deny', actor: people[winner].id }])
      t.equal((await verdictsOf(id)).length, 1)
    }
    for (const message of messages) t.equal(editsOf(message).length, 1)
  },
)

t.test('T81 a form of Slack and the console at the other gateway: one verdict, and the right name', async t => {
  for (let round = 0; round < 3; round++) {
    const id = await a.hold(`/race/${round}`, { bot })
    const message = await messageOf(id)
    const form = await formOf(b, 'U0EVE', message, 'approve')
    const [, answer] = await Promise.all([
      post(b, submitted('U0EVE', form, 'comment', 'yes')),
      a.deny(id, { comment: 'no' }, ada.token),
    ])
    const isDenied = answer.status === 200
    t.match(await end(message), isDenied ? 'Denied by Ada One' : /^Approved by Eve Two: answered with 200/)
    const verdicts = await verdictsOf(id)
    t.match(verdicts, [isDenied ? { actor: ada.id, action: 'hitl.deny' } : { actor: eve.id, action: 'hitl.approve' }])
    t.equal(verdicts.length, 1)
    t.equal(a.origin.seen.filter(({ target }) => target === `/race/${round}`).length, isDenied ? 0 : 1)
  }
})

t.test('T81 a form that Slack delivers to both gateways counts once', async t => {
  const id = await a.hold('/once', { bot })
  const message = await messageOf(id)
  const payload = submitted('U0ADA', await formOf(a, 'U0ADA', message, 'approve'), 'comment', 'yes')
  await Promise.all([post(a, payload), post(b, payload)])
  t.match(await end(message), /^Approved by Ada One: answered with 200/)
  t.equal((await verdictsOf(id)).length, 1)
  t.equal(a.origin.seen.filter(({ target }) => target === '/once').length, 1)
})
