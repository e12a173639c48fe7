/** Whether the collector of traces takes them. */
import { asError } from '../../base/as-error.ts'
import { collectorOf } from '../../gateway/tracing.ts'
import { pairOf } from '../../telemetry/tracing/span.ts'
import { type CheckResult, type DoctorParts, fail, ok } from './result.ts'

/** Sends a list without a span. */
export async function collectorFindings({ config, env, signal }: DoctorParts): Promise<readonly CheckResult[]> {
  const url = collectorOf(config, env)
  if (url === undefined) return []
  const headers = Object.fromEntries([
    ['Content-Type', 'application/json'],
    ...config.Telemetry.Tracing.Headers.map(pairOf),
  ])
  const remedy = 'Check Telemetry:Tracing:Url and Headers, and that the collector takes OTLP over HTTP as JSON.'
  const { host } = new URL(url)
  try {
    const answer = await fetch(url, { method: 'POST', headers, body: '{"resourceSpans":[]}', signal })
    await answer.body?.cancel()
    return [answer.ok ? ok(`${host} takes spans`) : fail(`${host} answered ${answer.status}`, remedy)]
  } catch (error) {
    const { message, cause } = asError(error)
    return [fail(`${host} cannot be reached: ${cause === undefined ? message : asError(cause).message}`, remedy)]
  }
}
