import { type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import { by } from './agents.ts'
import { bodyOf, done, type Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Clicks in Slack that come over HTTP, and codes by which people bind their accounts. */
export function slackHandlers({ hitl: { slack }, clock, fencedAs }: ManagementParts): Handlers {
  return {
    open: {
      takeSlackClick(call): Reply | Refusal {
        const { 'x-slack-signature': signature, 'x-slack-request-timestamp': timestamp } = call.req.headers
        if (slack?.isSlack === undefined) return refuse('not_found')
        const fenced = fencedAs?.()
        if (fenced !== undefined) return refuse(fenced)
        const body = bodyOf<Buffer>(call)
        if (!slack.isSlack({ signature: oneOf(signature), timestamp: oneOf(timestamp), body })) {
          return refuse('unauthenticated', 'The signature must be that of Slack, and of the last five minutes.')
        }
        return slack.take(payloadOf(body)) ? done : refuse('rate_limited')
      },
    },
    guarded: {
      async createLinkCode(call) {
        if (slack === undefined) return refuse('wrong_state', 'This gateway has no Slack app.')
        const { id } = call.caller.agent
        const entry = { at: clock.now(), ...by(call), action: 'console.linkCode', subject: id, details: {} }
        const { code, expiresAt } = await slack.links.open(id, entry)
        return call.problemNow() ?? jsonReply(201, { code, expiresAt: new Date(expiresAt).toISOString() })
      },
    },
  }
}

/** Two fields are none. */
const oneOf = (field: string | readonly string[] | undefined): string | undefined =>
  typeof field === 'string' ? field : undefined

function payloadOf(body: Buffer): unknown {
  try {
    return JSON.parse(new URLSearchParams(body.toString()).get('payload') ?? '')
  } catch {
    return undefined
  }
}
