import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import { inTime, systemClock } from '../runtime/clock.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { certificateFindings } from './doctor/certificates.ts'
import { collectorFindings } from './doctor/collector.ts'
import { databaseFindings } from './doctor/database.ts'
import { dataFindings, fileFindings } from './doctor/machine.ts'
import { providerFindings } from './doctor/provider.ts'
import { receiverFindings } from './doctor/receivers.ts'
import { type CheckResult, type DoctorParts, fail } from './doctor/result.ts'
import { jsonHelp, jsonOption, printResult, readArgs, type Shell } from './shell.ts'
import { upstreamsOf } from './upstreams.ts'

export const help = `usage: agent-gateway doctor [--json] [--config FILE]

Checks what the gateway needs around it, beyond what "agent-gateway check" reads: the limit of open files, the space and the owners of
the data folder, certificates, the clock and the rights in the database, the identity provider, webhooks, e-mail and the collector of traces. Prints ok, warn
or fail for each, with what to do. It changes nothing, sends no message, and ends within 10 seconds. Exit code 1 when
something fails, else 0. Run it as the user of the gateway, with its environment.

${jsonHelp}: ok, findings with level, subject, text, remedy
${configHelp}

Example:
  agent-gateway doctor --json | jq -r '.findings[] | select(.level == "fail") | .text'`

/** What is asked, in the order of the report. */
const examinations: Readonly<Record<string, (parts: DoctorParts) => Promise<readonly CheckResult[]>>> = {
  files: fileFindings,
  data: dataFindings,
  certificates: certificateFindings,
  database: databaseFindings,
  'identity provider': providerFindings,
  receivers: receiverFindings,
  collector: collectorFindings,
}

/** All of it ends within 10 seconds. */
const limitMs = 5_000

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, { ...configOption, ...jsonOption })
  const configuration = readConfiguration(shell, values.config)
  const upstreams = await upstreamsOf(configuration, shell.env)
  const stop = new AbortController()
  const parts: DoctorParts = { ...configuration, env: shell.env, clock: systemClock, upstreams, signal: stop.signal }
  const findings = (
    await Promise.all(Object.entries(examinations).map(([name, ask]) => findingsOf(name, ask(parts))))
  ).flat()
  stop.abort()
  upstreams.connections.close()
  const ok = findings.every(({ level }) => level !== 'fail')
  const code = printResult(shell, values, { ok, findings }, findings.flatMap(linesOf))
  // What did not answer in time must not keep the process.
  if (findings.some(({ isLate }) => isLate)) shell.exit(code)
  return code
}

interface ReportedResult extends CheckResult {
  readonly subject: string
  readonly isLate?: boolean
}

/** The findings, a failure of the look itself included, in time. */
function findingsOf(subject: string, work: Promise<readonly CheckResult[]>): Promise<readonly ReportedResult[]> {
  const named = work.then(
    findings => findings.map(finding => ({ subject, ...finding })),
    error => {
      if (!(error instanceof StartupError)) throw error
      return [{ subject, ...fail(asError(error).message) }]
    },
  )
  const late = `no answer within ${limitMs / 1_000} seconds`
  return inTime<readonly ReportedResult[]>(named, limitMs, () => [
    { subject, ...fail(late, 'Look at the network between here and there, and at the service.'), isLate: true },
  ])
}

function linesOf({ level, subject, text, remedy }: ReportedResult): readonly string[] {
  const first = `${level.padEnd(6)}${subject.padEnd(19)}${text}`
  return remedy === null ? [first] : [first, `${''.padEnd(25)}${remedy}`]
}
