import { jsonReply } from '../http/respond.ts'
import type { Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** `GET /fleet`. */
export function fleetHandlers({ members }: Pick<ManagementParts, 'members'>): Handlers['guarded'] {
  return {
    getFleet: () =>
      jsonReply(200, {
        members: members().map(({ startedAt, lastSeenAt, ...member }) => ({
          ...member,
          startedAt: new Date(startedAt).toISOString(),
          lastSeenAt: new Date(lastSeenAt).toISOString(),
        })),
      }),
  }
}
