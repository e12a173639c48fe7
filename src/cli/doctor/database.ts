/** The clock of PostgreSQL, and what its user may do there. */
import { postgresSettings, usesPostgres } from '../../gateway/storage.ts'
import type { Inspection } from '../../storage/postgres/inspect.ts'
import { type CheckResult, type DoctorParts, fail, ok, warn } from './result.ts'

/** Gateways follow the clock of the database: tokens of an identity provider are then judged by that one. */
const clocks = { warnMs: 1_000, failMs: 60_000 }

export async function databaseFindings({ config, baseDirectory, clock }: DoctorParts): Promise<readonly CheckResult[]> {
  if (!usesPostgres(config)) return []
  // Loaded only when it is used.
  const { inspectDatabase } = await import('../../storage/postgres/inspect.ts')
  const settings = postgresSettings(config, baseDirectory)
  const inspection = await inspectDatabase(settings, clock)
  return inspectionFindings(inspection, settings.schema)
}

export const inspectionFindings = (inspection: Inspection, schema: string): readonly CheckResult[] => [
  clockFinding(inspection),
  ...rightFindings(inspection, schema),
]

function clockFinding({ aheadMs, roundTripMs }: Inspection): CheckResult {
  const off = Math.max(0, Math.abs(aheadMs) - roundTripMs)
  const text = `its clock is ${Math.round(Math.abs(aheadMs))} ms ${aheadMs < 0 ? 'behind' : 'ahead of'} the one of this machine`
  if (off < clocks.warnMs) return ok(text)
  return (off < clocks.failMs ? warn : fail)(text, 'Let both machines follow a time server, such as by chrony.')
}

function rightFindings(inspection: Inspection, schema: string): readonly CheckResult[] {
  const { missing, mayCreate, lacks, migrates } = inspection
  if (missing.length > 0) {
    const text = `the schema ${schema} lacks ${missing.join(', ')}`
    if (mayCreate && migrates) return [ok(`${text}: the next start brings it up to date`)]
    return [fail(text, 'Run agent-gateway storage migrate as the owner of the schema.')]
  }
  if (lacks.length === 0) return [ok('its user has the rights that a gateway needs')]
  const remedy = 'Run agent-gateway storage migrate with the owner in AGENT_GATEWAY_STORAGE_OWNER: it grants them.'
  return [fail(`its user may not ${lacks.join('; ')}`, remedy)]
}
