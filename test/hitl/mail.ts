/** E-mail about held requests: plain text, past the egress guard, with TLS except to this machine. */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { HitlEvent } from '../../src/hitl/events.ts'
import { mailReceiver } from '../../src/hitl/mail.ts'
import { noMail } from '../fixtures/hooks.ts'
import { type OwnSetup, openOwnRequests } from '../fixtures/own-requests.ts'
import { type MailServer, startMailServer } from '../fixtures/smtp.ts'

const certificate = new URL('../fixtures/tls/cert.pem', import.meta.url).pathname
const cert = readFileSync(certificate, 'utf8')
const key = readFileSync(new URL('../fixtures/tls/key.pem', import.meta.url), 'utf8')
const publicUrl = 'https://gateway.example'
const { signal } = new AbortController()

const pending = (more: object = {}): HitlEvent => ({
  ...{ id: 'e1', type: 'pending', at: 0, hitlId: 'h1' },
  data: {
    ...{ id: 'h1', method: 'POST', url: 'https://pay.example/refunds?token=t0psecret', agentId: 'agent-1' },
    ...{ agentName: 'desk', ownerId: 'team-a', title: 'Refund 20', expiresAt: '2026-11-24T12:00:00.000Z', ...more },
  },
})

interface MailSetup extends OwnSetup {
  readonly Host?: string
  readonly link?: string | undefined
}

async function receiverTo(t: Test, { port }: MailServer, setup: MailSetup = {}) {
  const { Host = '127.0.0.1', ...more } = setup
  const own = await openOwnRequests(t, { egress: { DenyPrivateNetworks: false }, ...more })
  const settings = {
    ...noMail,
    Host,
    Port: port,
    From: 'gateway@example.com',
    To: ['rita@example.com', 'ops@example.com'],
  }
  const sign = { User: 'gateway', Password: 'mail-password' }
  return mailReceiver({
    settings: { ...settings, ...sign },
    connect: own.connect,
    ca: cert,
    publicUrl: 'link' in setup ? setup.link : publicUrl,
  })
}

/** The text of a message, decoded: it is short, so that only its ends of lines may be encoded. */
const textOf = (message: string): string => message.slice(message.indexOf('\r\n\r\n')).replaceAll('=\r\n', '')

t.test('a request is one message of plain text to all reviewers, with the facts and a link', async t => {
  const server = await startMailServer(t)
  const receiver = await receiverTo(t, server)
  t.equal(await receiver.send(pending(), signal), undefined)
  const [message = ''] = server.messages
  t.match(message, 'Subject: Review needed: desk\r\n')
  t.match(message, 'Content-Type: text/plain; charset=utf-8')
  t.match(message, 'Auto-Submitted: auto-generated', 'no vacation answers it')
  t.match(textOf(message), /^\r\n\r\nReview needed until 2026-11-24 12:00 UTC\r\n\r\nRequest/)
  for (const fact of ['POST https://pay.example/refunds', 'Refund 20', `${publicUrl}/console/#/requests/h1`]) {
    t.match(textOf(message), fact)
  }
  t.notMatch(message, 't0psecret')
  t.match(server.lines.filter(line => line.startsWith('RCPT')).join(), /rita@example.com.*ops@example.com/)
  t.ok(server.lines.some(line => line.startsWith('AUTH PLAIN ')))
  await receiver.sendMore(pending(), 23, signal)
  t.match(server.messages[1], 'Subject: 23 more requests wait for review')
  t.match(textOf(server.messages[1] ?? ''), /^\r\n\r\n23 more requests wait for review\r\n\r\nOpen in the console: /)
})

t.test('T36 what an agent wrote adds no field and no recipient', async t => {
  const server = await startMailServer(t)
  const receiver = await receiverTo(t, server)
  const hostile = 'desk\r\nBcc: evil@example.net\r\n\r\n.\r\nMAIL FROM:<x@example.net>'
  await receiver.send(pending({ agentName: hostile, title: hostile, method: hostile }), signal)
  t.equal(server.messages.length, 1)
  t.notMatch(server.messages[0]!.split('\r\n\r\n', 1)[0], /^bcc/im)
  t.equal(server.lines.filter(line => line.startsWith('MAIL')).length, 1)
  t.equal(server.lines.filter(line => line.startsWith('RCPT')).length, 2)
  await receiver.send(pending({ agentName: '\u202egnp ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2' }), signal)
  t.match(server.messages[1], /Subject: Review needed: \\u\{202e\}gnp\s+\[redacted: github-token\]/)
  t.notMatch(server.messages[1], 'ghp_a1B2')
})

t.test('the end of a request is told with the agent, and without a link where the console has no address', async t => {
  const server = await startMailServer(t)
  const receiver = await receiverTo(t, server, { link: undefined })
  const { data, ...event } = pending({ agentName: undefined })
  await receiver.send({ ...event, data, type: 'denied' }, signal)
  t.match(server.messages[0], 'Subject: agent-1: denied')
  t.notMatch(server.messages[0], 'Open in the console')
})

t.test('a server elsewhere gets neither password nor message without TLS that its certificate proves', async t => {
  const plain = await startMailServer(t)
  const toPlain = await receiverTo(t, plain, { Host: 'mail.example' })
  t.match(await toPlain.send(pending(), signal), { failure: /STARTTLS/ })
  const other = await startMailServer(t, { tls: { cert, key } })
  const toOther = await receiverTo(t, other, { Host: 'mail.example' })
  t.match(await toOther.send(pending(), signal), { failure: /altnames/ })
  for (const { lines, messages } of [plain, other]) {
    t.notOk(lines.some(line => /^(?:AUTH|MAIL)/.test(line)))
    t.strictSame(messages, [])
  }
})

t.test('a server with STARTTLS and a trusted certificate gets the password inside TLS', async t => {
  const server = await startMailServer(t, { tls: { cert, key } })
  const receiver = await receiverTo(t, server, { Host: 'idp.test' })
  const result = await receiver.send(pending(), signal)
  t.equal(result, undefined)
  const at = (command: string) => server.lines.findIndex(line => line.startsWith(command))
  t.ok(at('STARTTLS') >= 0 && at('STARTTLS') < at('AUTH'), server.lines.join('; '))
  t.equal(server.messages.length, 1)
})

for (const [reply, isPassing] of [
  ['451 later', true],
  ['550 no such user', false],
] as const) {
  t.test(`a reply of ${reply} ${isPassing ? 'may pass' : 'is final'}`, async t => {
    const server = await startMailServer(t, { replies: { RCPT: reply } })
    const receiver = await receiverTo(t, server)
    t.match(await receiver.send(pending(), signal), { isPassing, failure: Error })
    t.strictSame(server.messages, [])
  })
}

t.test('a mail server is reached past the egress guard', async t => {
  const server = await startMailServer(t)
  const receiver = await receiverTo(t, server, { egress: { DenyPrivateNetworks: true } })
  await t.rejects(receiver.send(pending(), signal), /refused by Egress/)
  t.strictSame(server.lines, [])
})

t.test('a message that is under way ends when the gateway stops', async t => {
  const server = await startMailServer(t, { replies: { MAIL: '' } })
  const receiver = await receiverTo(t, server)
  const stop = new AbortController()
  const sent = receiver.send(pending(), stop.signal)
  setTimeout(() => stop.abort(), 50)
  t.match(await sent, { isPassing: true })
})
