/** The Slack app over real sockets: messages, clicks, forms and verdicts, with a false Slack. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'
import {
  buttonOf,
  channel,
  member,
  pressed,
  type SlackCalled,
  signedCall,
  signingSecret,
  startSlack,
  submitted,
  team,
} from '../fixtures/slack.ts'

const amount = { field: 'input.body.amount', operator: 'gt', value: 10 }
const open = {
  name: 'refunds',
  effect: 'Hitl',
  chatApproval: true,
  chatFields: ['input.body.amount'],
  conditions: [amount],
}
const policy = { name: 'support', default: 'Hitl', rules: [open] }

const slack = await startSlack(t)
const review = await startReview(t, {
  alone: 'each gateway remembers the signatures that it has taken',
  config: {
    System: { PublicUrl: 'https://gateway.example' },
    Policies: [policy],
    HumanInTheLoop: {
      Slack: {
        ...{ BotToken: 'xoxb-1', SigningSecret: signingSecret, Team: team, ApiUrl: slack.apiUrl, Verdicts: 'rules' },
        Channels: [{ Id: channel }],
      },
    },
  },
})
const { reviewer } = review
const bot = await review.agent({ policyName: 'support' })
const ada = 'U0ADA'
const link = (id: string, ...users: readonly string[]) =>
  review.manage('PUT', `/agents/${id}/identities`, {
    identities: users.map(user => ({ provider: 'slack', team, user })),
  })
await link(reviewer.id, ada)

const json = { 'Content-Type': 'application/json' }
const hold = (body = '{"amount":20}') => review.hold('/refunds', { bot, headers: json, body })
const post = (payload: object, at = Date.now()) => send(signedCall(payload, { at }))
const send = ({ body, headers }: { readonly body: string; readonly headers: Record<string, string> }) =>
  fetchDocumented(`${review.url}/hitl/slack`, { method: 'POST', headers, body })

const messageOf = async (id: string): Promise<SlackCalled> =>
  (await eventually(
    () => slack.called.find(one => one.method === 'chat.postMessage' && JSON.stringify(one.args).includes(id)),
    found => found !== undefined,
  ))!
const stamp = ({ ts = '' }: SlackCalled) => ({ ts })
const next = async (method: string, act: () => Promise<unknown>): Promise<SlackCalled> => {
  const { length } = slack.called.filter(one => one.method === method)
  await act()
  return (await slack.calls(method, length + 1))[length]!
}
const statusOf = async (id: string) => (await (await review.call('GET', `/hitl/${id}`)).json()) as { status: string }
const press = (user: string, message: SlackCalled, action: string) =>
  post(pressed(user, stamp(message), buttonOf(message, action)))
/** The form that a press opens. */
const formOf = (user: string, message: SlackCalled, action: string) =>
  next('views.open', () => press(user, message, action))
const told = (act: () => Promise<unknown>) => next('chat.postEphemeral', act)

t.test('a request is approved in Slack by the person who is linked, and the message shows it', async t => {
  const id = await hold()
  const message = await messageOf(id)
  t.equal(message.token, 'xoxb-1')
  t.match(message.args, { channel, unfurl_links: 'false' })
  const text = JSON.stringify(message.args)
  for (const fact of ['input.body.amount: 20', `POST ${review.origin.url}/refunds`, 'refunds (support)'])
    t.match(text, fact)
  t.match(text, `https://gateway.example/console/#/requests/${id}`)
  const form = await formOf(ada, message, 'approve')
  t.match(JSON.stringify(form.args['view']), 'input.body.amount: 20', 'the form repeats the request')
  t.equal((await statusOf(id)).status, 'Pending', 'one press decides nothing')
  const edited = await next('chat.update', () => post(submitted(ada, form.args['view'], 'comment', 'looks right')))
  t.match(edited.args, { channel, ts: stamp(message).ts })
  const last = await eventually(
    () => slack.called.filter(one => one.method === 'chat.update' && one.args['ts'] === stamp(message).ts).at(-1),
    one => JSON.stringify(one).includes('answered with 200'),
  )
  t.match(JSON.stringify(last?.args), 'Approved by tester')
  t.notMatch(JSON.stringify(last?.args), '"actions"')
  t.match(JSON.stringify(last?.args), 'input.body.amount: 20')
  const { text: trail } = await review.manage('GET', `/audit?subject=${id}&action=hitl.approve`)
  const details = { via: 'slack', user: ada, channel, message: stamp(message).ts, comment: 'looks right' }
  t.match(JSON.parse(trail).items, [{ actor: reviewer.id, details }])
})

t.test('a denial in Slack reaches the agent with its comment', async t => {
  const id = await hold('{"amount":1}')
  const message = await messageOf(id)
  t.equal(buttonOf(message, 'approve'), undefined, 'the default of the policy opens nothing')
  const form = await formOf(ada, message, 'deny')
  await post(submitted(ada, form.args['view'], 'comment', 'too late'))
  t.match(
    await eventually(
      () => statusOf(id),
      ({ status }) => status === 'Denied',
    ),
    {
      pending: { comment: 'too late', decidedBy: reviewer.id },
    },
  )
})

t.test('T79 who is not linked, a guest, or of another workspace decides nothing, and is told so alone', async t => {
  const id = await hold()
  const message = await messageOf(id)
  t.match((await told(() => press('U0EVE', message, 'approve'))).args, { user: 'U0EVE', text: /not linked/ })
  for (const more of [{ is_restricted: true }, { is_ultra_restricted: true }, { deleted: true }, { team_id: 'T9' }]) {
    slack.answers.set('users.info', member(ada, more))
    t.match((await told(() => press(ada, message, 'approve'))).args, { user: ada, text: /Guests/ })
  }
  slack.answers.set('users.info', { ok: false, error: 'user_not_found' })
  t.match((await told(() => press(ada, message, 'deny'))).args, { text: /who you are/ })
  slack.answers.delete('users.info')
  const { length } = slack.called
  const payload = pressed(ada, stamp(message), buttonOf(message, 'deny'))
  t.equal((await post({ ...payload, team: { id: 'T0OTHER' } })).status, 200)
  t.equal((await post({ ...payload, channel: { id: 'C0OTHER' } })).status, 200)
  await told(() => press('U0EVE', message, 'deny'))
  t.equal(slack.called.length, length + 1, 'other workspaces and channels are not answered')
  t.equal((await statusOf(id)).status, 'Pending')
})

t.test('T79 rights are asked again when the form is submitted', async t => {
  const id = await hold()
  const message = await messageOf(id)
  const other = await review.newReviewer()
  await link(other.id, 'U0BOB')
  const form = await formOf('U0BOB', message, 'approve')
  await review.manage('PUT', `/agents/${other.id}/roles`, { roles: ['agent'] })
  const submit = () => post(submitted('U0BOB', form.args['view'], 'comment', randomUUID()))
  t.match((await told(submit)).args, { text: /may not decide/ })
  await link(other.id)
  t.match((await told(submit)).args, { text: /not linked/ })
  // Another one than was shown.
  const view = form.args['view']
  const forged = { ...view, private_metadata: view.private_metadata.replace(/"digest":"[0-9a-f]{4}/, '"digest":"0000') }
  t.match((await told(() => post(submitted(ada, forged, 'comment', 'x')))).args, { text: /another request/ })
  t.equal((await statusOf(id)).status, 'Pending')
})

t.test('T82 an approval needs the rule as it is now, one approver, no secret and no risk', async t => {
  const id = await hold()
  const message = await messageOf(id)
  const form = await formOf(ada, message, 'approve')
  const secret = await messageOf(await hold(`{"amount":20,"token":"ghp_${'a1B2'.repeat(9)}"}`))
  t.equal(buttonOf(secret, 'approve'), undefined)
  t.not(buttonOf(secret, 'deny'), undefined)
  t.notMatch(JSON.stringify(secret.args), 'ghp_a1')
  const two = await review.policy({ name: 'two', default: 'Deny', rules: [{ ...open, approvals: 2 }] })
  const twoBot = await review.agent({ policyName: two })
  const held = await review.hold('/refunds', { bot: twoBot, headers: json, body: '{"amount":20}' })
  t.equal(buttonOf(await messageOf(held), 'approve'), undefined)
  const free = await review.policy({ name: 'free', default: 'Deny', rules: [open] })
  const freeBot = await review.agent({ policyName: free })
  const opened = await messageOf(await review.hold('/x', { bot: freeBot, headers: json, body: '{"amount":20}' }))
  t.not(buttonOf(opened, 'approve'), undefined)
  await review.manage('PUT', '/policies/free', {
    default: 'Deny',
    rules: [{ ...open, chatApproval: false, chatFields: [] }],
  })
  t.match((await told(() => press(ada, opened, 'approve'))).args, { text: /console alone/ })
  t.ok(form)
})

t.test('T81 forged, old, repeated and long calls are refused', async t => {
  const payload = pressed(ada, { ts: '1.0' }, { action_id: 'open', nonce: randomUUID() })
  const call = signedCall(payload, { at: Date.now() })
  t.equal((await send(call)).status, 200)
  t.equal((await send(call)).status, 401, 'repeated')
  t.equal((await send(signedCall(payload, { at: Date.now(), secret: 'other' }))).status, 401)
  t.equal((await post(payload, Date.now() - 301_000)).status, 401)
  t.equal((await send({ ...call, headers: { 'content-type': 'application/x-www-form-urlencoded' } })).status, 401)
  t.equal((await post({ ...payload, long: 'x'.repeat(70_000) })).status, 413)
  for (const body of [{}, { type: 'view_submission' }, { type: 5, team: [] }]) t.equal((await post(body)).status, 200)
})

t.test('a message whose receipt was lost is edited after a click on it', async t => {
  slack.answers.set('chat.postMessage', (_, res) => void res.destroy())
  const id = await hold()
  const message = await messageOf(id)
  slack.answers.delete('chat.postMessage')
  const lost = { ts: '1699999999.000001' }
  const form = await next('views.open', () => post(pressed(ada, lost, buttonOf(message, 'deny'))))
  await post(submitted(ada, form.args['view'], 'comment', 'no'))
  const edits = () => slack.called.filter(({ method, args }) => method === 'chat.update' && args['ts'] === lost.ts)
  const [edit] = await eventually(edits, ({ length }) => length > 0)
  t.match(edit?.args, { channel, text: /Denied by/ })
})

t.test('of two verdicts at the same time one counts, and the message has the name of who gave it', async t => {
  const eve = await review.newReviewer({ name: 'Eve Other' })
  await link(eve.id, 'U0EVEOTHER')
  const id = await hold()
  const message = await messageOf(id)
  const forms = [await formOf(ada, message, 'deny'), await formOf('U0EVEOTHER', message, 'approve')]
  const [first, second] = forms.map(({ args }) => args['view'])
  const loser = await told(() =>
    Promise.all([
      post(submitted(ada, first, 'comment', 'no')),
      post(submitted('U0EVEOTHER', second, 'comment', 'yes')),
    ]),
  )
  t.match(loser.args, { text: /decided/ })
  const name = loser.args['user'] === ada ? 'Eve Other' : 'tester'
  const edits = () =>
    slack.called.filter(({ method, args }) => method === 'chat.update' && args['ts'] === stamp(message).ts)
  const done = await eventually(edits, list => /Denied|answered/.test(list.at(-1)?.args['text']))
  for (const { args } of done) t.match(args, { text: new RegExp(`^(?:Denied|Approved) by ${name}`) })
  const { text } = await review.manage('GET', `/audit?subject=${id}`)
  const actions: readonly string[] = JSON.parse(text).items.map(({ action }: { action: string }) => action)
  t.equal(actions.filter(action => action === 'hitl.deny' || action === 'hitl.approve').length, 1)
})

t.test('a verdict of the console ends the buttons, and a click that comes later is told of it', async t => {
  const message = await messageOf(await hold())
  const button = buttonOf(message, 'deny')
  const edited = await next('chat.update', () => review.deny(button.value.split(' ')[0]!))
  t.match(edited.args, { ts: stamp(message).ts, text: /Denied by tester/ })
  const late = () => post(pressed(ada, stamp(message), button))
  t.match((await told(late)).args, { user: ada, text: /already: Denied/ })
})

t.test('links in messages change nothing, whoever opens them', async t => {
  const id = await hold()
  const { args } = await messageOf(id)
  const [link = ''] = /https:\/\/gateway\.example[^"\\]*/.exec(JSON.stringify(args)) ?? []
  const { pathname, search } = new URL(link)
  for (const method of ['GET', 'HEAD']) {
    for (const path of [pathname + search, `/hitl/${id}`, '/hitl/slack'])
      await fetchDocumented(review.url + path, { method })
  }
  t.equal((await statusOf(id)).status, 'Pending')
})

t.test('a code of the console binds the account that types it, once', async t => {
  const carol = await review.newReviewer()
  const code = async () =>
    ((await (await review.call('POST', '/console/link-codes', { token: carol.token })).json()) as { code: string }).code
  const message = await messageOf(await hold())
  t.match((await told(() => press('U0CAROL', message, 'deny'))).args, {
    blocks: [{}, { elements: [{ action_id: 'link' }] }],
  })
  const form = await next('views.open', () => post(pressed('U0CAROL', stamp(message), { action_id: 'link' })))
  const type = (user: string, text: string) => told(() => post(submitted(user, form.args['view'], 'code', text)))
  const given = await code()
  t.match((await type('U0CAROL', ` ${given.toLowerCase()} `)).args, { text: /is linked/ })
  t.match((await type('U0EVE', given)).args, { text: /not valid/ }, 'a code is good once')
  t.match((await type(ada, await code())).args, { text: /another person/ })
  await formOf('U0CAROL', message, 'deny')
  const guess = () => type('U0GUESS', 'AAAAA-AAAAA')
  for (let count = 0; count < 5; count++) t.match((await guess()).args, { text: /not valid/ })
  t.match((await guess()).args, { text: /Too many tries/ })
})

t.test('a service that asks for time gets it, and no message is lost', async t => {
  let count = 0
  slack.answers.set('chat.postMessage', (_, res) => {
    if (++count > 1) return { ok: true, ts: `1700000777.00000${count}` }
    res.writeHead(429, { 'Retry-After': '1' }).end()
    return undefined
  })
  const id = await hold()
  const posts = () =>
    slack.called.filter(({ method, args }) => method === 'chat.postMessage' && JSON.stringify(args).includes(id))
  t.equal((await eventually(posts, found => found.length === 2)).length, 2)
  slack.answers.delete('chat.postMessage')
})
