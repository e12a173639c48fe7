import { refuse } from '../base/refusals.ts'
import type { AccountOf } from '../credentials/accounts.ts'
import { jsonReply } from '../http/respond.ts'
import { by } from './agents.ts'
import { bodyOf, type Handlers, type ManagementCall, replyOf, textsOf, timeText } from './call.ts'
import type { AskingPerson, ConnectionReturn, ConnectionWish } from './credential-parts.ts'
import type { ManagementParts } from './parts.ts'

/** For the servers of credentials: a change of the settings needs a restart. */
const cached = ['Cache-Control', 'public, max-age=3600']

export function clientHandlers({ credentials }: ManagementParts): Handlers['open'] {
  return {
    getClientDocument({ named }) {
      const document = credentials.clientDocument(named)
      return document === undefined ? refuse('not_found') : jsonReply(200, document, cached)
    },
  }
}

/** Credentials of upstreams: how they are, never what they are. */
export function credentialHandlers({ credentials, registry }: ManagementParts): Handlers['guarded'] {
  return {
    async listCredentials(call) {
      const { agentId } = textsOf(call)
      const agent = agentId === undefined ? undefined : registry.get(agentId)
      const { ownerId, roles } = call.caller.agent
      if (!roles.some(role => role === 'auditor' || role === 'admin')) {
        if (agentId === undefined) return jsonReply(200, [])
        if (agent?.ownerId !== ownerId) return refuse('forbidden', ownAlone)
        const found = await credentials.list(agent)
        return jsonReply(
          200,
          found.filter(({ per }) => per === 'Agent' || per === 'Owner'),
        )
      }
      if (agentId !== undefined && agent === undefined) return refuse('not_found')
      return jsonReply(200, await credentials.list(agent))
    },
    async getCredential({ named }) {
      return replyOf((await credentials.list()).find(({ name }) => name === named))
    },
    async renewCredential(call) {
      return replyOf(await credentials.renew(call.named, by(call)))
    },
    async connectCredential(call) {
      const granted = bodyOf<AccountOf & { readonly refreshToken: string }>(call)
      return replyOf(await credentials.connect(call.named, granted, asking(call)))
    },
    async disconnectCredential(call) {
      return replyOf(await credentials.disconnect(call.named, textsOf(call), asking(call)))
    },
    async listAccounts({ named }) {
      return replyOf(await credentials.accounts(named))
    },
    async beginConnection(call) {
      const begun = await credentials.begin(call.named, bodyOf<ConnectionWish | undefined>(call) ?? {}, asking(call))
      return replyOf(begun, ({ expiresAt, ...ways }) => ({ ...ways, expiresAt: timeText(expiresAt) }), 201)
    },
    async finishConnection(call) {
      const done = await credentials.finish(call.named, bodyOf<ConnectionReturn>(call), asking(call))
      return done !== undefined && 'everySeconds' in done ? jsonReply(202, done) : replyOf(done)
    },
  }
}

const ownAlone =
  'Auditors and admins see all credentials; others accounts of agents with their own ownerId, by agentId.'

const asking = (call: ManagementCall): AskingPerson => ({
  ...{ person: call.caller.agent, by: by(call), problemNow: call.problemNow },
})
