/** Whether the collector of traces takes them. */
import { collectorAccess, collectorOf } from '../../gateway/tracing.ts'
import { type CheckResult, type DoctorParts, failOf, ok } from './result.ts'

/** Attempts included, which the SDK repeats. */
const limitMs = 3_000

/** Sends a list without a span, in the way of the spans. */
export async function collectorFindings({
  config,
  env,
  upstreams,
  clock,
}: DoctorParts): Promise<readonly CheckResult[]> {
  const url = collectorOf(config, env)
  if (url === undefined) return []
  const { host } = new URL(url)
  // Loaded only when it is used.
  const { tryCollector } = await import('../../telemetry/tracing/open.ts')
  const problem = await tryCollector(collectorAccess(config, env, upstreams.ca), limitMs)
  if (problem === undefined) return [ok(`${host} takes spans`)]
  return [failOf(`${host} does not take spans`, problem, remedy, clock.now())]
}

const remedy =
  'Check Telemetry:Tracing:Url and Headers, and that the collector takes OTLP over HTTP as JSON; Proxy:CaFile adds a private authority.'
