import { refuse } from '../base/refusals.ts'
import type { BrowserSubscription } from '../hitl/push/push.ts'
import { jsonReply } from '../http/respond.ts'
import { by } from './agents.ts'
import { bodyOf, done, type Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** Pushes to the browsers of the caller, and test messages to all. */
export function pushHandlers({ hitl: { push, stopping } }: Pick<ManagementParts, 'hitl'>): Handlers['guarded'] {
  const off = () => refuse('wrong_state', 'Web Push is not switched on: HumanInTheLoop:Push:Enabled.')
  return {
    async getPushKey() {
      return push === undefined ? off() : jsonReply(200, { publicKey: await push.publicKey() })
    },
    async subscribeToPush(call) {
      if (push === undefined) return off()
      const refused = await push.subscribe(call.caller.agent.id, bodyOf<BrowserSubscription>(call), by(call))
      return refused ?? done
    },
    async unsubscribeFromPush(call) {
      if (push === undefined) return off()
      return (await push.unsubscribe(call.caller.agent.id, call.named, by(call))) ? done : refuse('not_found')
    },
    async testPush() {
      return push === undefined ? off() : jsonReply(200, { services: await push.test(stopping) })
    },
  }
}
