import { jsonReply } from '../http/respond.ts'
import type { Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** `GET /fleet`. */
export function fleetHandlers({ fleet }: Pick<ManagementParts, 'fleet'>): Handlers['guarded'] {
  return {
    getFleet() {
      const { newest, members } = fleet()
      const shown = members.map(({ startedAt, lastSeenAt, ...member }) => ({
        ...member,
        startedAt: new Date(startedAt).toISOString(),
        lastSeenAt: new Date(lastSeenAt).toISOString(),
      }))
      return jsonReply(200, { newest, members: shown })
    },
  }
}
