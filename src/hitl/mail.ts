/** E-mail: plain text with a link. Each message has a connection of its own, with TLS except to this machine. */
import type { Socket } from 'node:net'
import { getCACertificates } from 'node:tls'
import { isLoopback } from '../base/address.ts'
import type { HitlEvent } from './events.ts'
import { linkOf, listLink, type MessageOptions } from './messages/message.ts'
import { fit, type Notice, noticeOf, noticeOfMore, plainText } from './messages/notice.ts'
import { type MailSettings, type NotAccepted, queuesOfMail, type Receiver } from './receiver.ts'

export interface MailParts extends Pick<MessageOptions, 'publicUrl'> {
  readonly settings: MailSettings
  /** Connects past the egress guard. */
  readonly connect: (host: string, port: number, signal: AbortSignal) => Promise<Socket>
  /** PEM text of certificate authorities trusted beside the built-in ones. */
  readonly ca?: string | undefined
}

/** Port on which TLS begins at once (RFC 8314 section 3). */
const tlsPort = 465
const replyMs = 10_000
/** Replies from here on are final (RFC 5321 section 4.2.1). */
const permanent = 500

export function mailReceiver(parts: MailParts): Receiver {
  const { settings } = parts
  return {
    ...{ Rules: settings.Rules, Owners: settings.Owners, queues: queuesOfMail(settings), isChat: true },
    send: (event, signal) => send(noticeOf(event, linkOf(event, parts)), subjectOf(event), { parts, signal }),
    sendMore: (_, count, signal) => {
      const notice = noticeOfMore(count, listLink(parts))
      return send(notice, notice.headline, { parts, signal })
    },
  }
}

/** The subject is on locked screens: it has the name of the agent alone. */
function subjectOf({ type, data }: HitlEvent): string {
  const who = fit(plainText(String(data['agentName'] ?? data['agentId'])))
  return type === 'pending' ? `Review needed: ${who}` : `${who}: ${type}`
}

interface SendTerms {
  readonly parts: MailParts
  readonly signal: AbortSignal
}

async function send(notice: Notice, subject: string, { parts, signal }: SendTerms): Promise<NotAccepted | undefined> {
  const { settings, ca } = parts
  const { Host: host = '', Port: port, User: user, Password: pass } = settings
  // Loaded only when it is used: it takes memory and time.
  const { createTransport } = await import('nodemailer')
  const connection = await parts.connect(host, port, signal)
  // The server may break it off before the transport listens: that would end the process.
  connection.on('error', () => {})
  const abort = () => connection.destroy(new Error('the gateway stops'))
  signal.addEventListener('abort', abort)
  const transport = createTransport({
    ...{ host, port, secure: port === tlsPort, requireTLS: !isLoopback(host) },
    ...(user !== undefined && { auth: { user, pass: pass ?? '' } }),
    tls: { rejectUnauthorized: true, ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }) },
    ...{ greetingTimeout: replyMs, socketTimeout: replyMs, disableFileAccess: true, disableUrlAccess: true },
    getSocket: (_, done) => done(null, { connection }),
  })
  try {
    // No reader's vacation answers it (RFC 3834 section 5).
    const headers = { 'Auto-Submitted': 'auto-generated' }
    await transport.sendMail({ from: settings.From, to: [...settings.To], subject, text: textOf(notice), headers })
    return undefined
  } catch (error) {
    const reply = error instanceof Error && 'responseCode' in error ? Number(error.responseCode) : undefined
    return { failure: error, isPassing: reply === undefined || reply < permanent }
  } finally {
    signal.removeEventListener('abort', abort)
    connection.destroy()
  }
}

function textOf({ headline, facts, link }: Notice): string {
  const lines = facts.map(([name, value]) => fit(`${name}: ${value}`))
  return [
    fit(headline),
    ...(lines.length > 0 ? ['', ...lines] : []),
    ...(link === undefined ? [] : ['', `Open in the console: ${link}`]),
    '',
  ].join('\r\n')
}
