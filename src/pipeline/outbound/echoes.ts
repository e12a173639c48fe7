import { withoutEchoes } from '../../credentials/placement.ts'
import { credentialEchoes } from '../../telemetry/layout.ts'
import type { OutboundParts } from '../parts.ts'
import type { Call } from './call.ts'

/**
 * The fields of an answer as the agent may see them: without the values of the credentials that were added to its request. The
 * body is not searched.
 */
export function guardFields(
  fields: readonly string[],
  { credentials }: Pick<Call, 'credentials'>,
  { metrics }: Pick<OutboundParts, 'metrics'>,
): readonly string[] {
  if (credentials === undefined) return fields
  const { fields: guarded, echoes } = withoutEchoes(fields, credentials)
  if (echoes > 0) metrics.add(credentialEchoes, echoes)
  return guarded
}
