import { systemClock } from '../runtime/clock.ts'
import { bufferLines, type Lines } from './lines.ts'
import { type LogStatus, openLogOutput } from './output.ts'

/**
 * The fields of a log line: one name for one thing, the same in every line. Secrets, header values and bodies are
 * never among them, so nothing needs to be redacted here.
 */
export interface LogFields {
  readonly requestId?: string | undefined
  readonly keyId?: string | undefined
  readonly agentId?: string | undefined
  readonly ownerId?: string | undefined
  readonly clientIp?: string | undefined
  readonly method?: string | undefined
  /** How the client came that has the gateway as its proxy. */
  readonly road?: string | undefined
  /** Id of the tunnel that it came through: that of its CONNECT. */
  readonly tunnel?: string | undefined
  /** Scheme, host and port of the upstream. */
  readonly origin?: string | undefined
  /** Path of the target, without its query. */
  readonly path?: string | undefined
  /** Status of the answer sent downstream. */
  readonly status?: number | undefined
  /** Code of the refusal, when the gateway answered itself. */
  readonly refusal?: string | undefined
  /** Why the gateway refused, where the code is not enough. */
  readonly cause?: string | undefined
  /** Why the upstream could not be reached or broke off: a value of the label of `agent_gateway_upstream_failures_total`. */
  readonly failure?: string | undefined
  /** It was sent once more, on another connection to the upstream. */
  readonly sentAgain?: true | undefined
  readonly decision?: string | undefined
  readonly source?: string | undefined
  readonly policy?: string | null | undefined
  readonly policyVersion?: string | null | undefined
  readonly rule?: string | null | undefined
  readonly reason?: string | undefined
  /** Conditions that held, with the values they saw. */
  readonly matched?: readonly string[] | undefined
  readonly risk?: number | undefined
  readonly riskAtLeast?: true | undefined
  readonly evaluated?: number | undefined
  /** Time that the decision took, nanoseconds. */
  readonly durationNs?: number | undefined
  /** Decisions that rules in shadow would have made. */
  readonly shadow?: readonly string[] | undefined
  /** Id of a pending request. */
  readonly hitlId?: string | undefined
  /** Id of the grant by which a request passed without asking. */
  readonly grantId?: string | undefined
  /** From the head to the last byte of the answer, milliseconds. */
  readonly ms?: number | undefined
  /** Ids of the span of a request that is recorded. */
  readonly traceId?: string | undefined
  readonly spanId?: string | undefined
  readonly bytesIn?: number | undefined
  readonly bytesOut?: number | undefined
  /** What is known of the tokens of a call of a model: read, partial or missing. */
  readonly usage?: string | undefined
  /** As the answer names it. */
  readonly model?: string | undefined
  /** Tokens that the model read, cached ones among them. */
  readonly tokensIn?: number | undefined
  /** Those of them that were read from a cache. */
  readonly tokensCached?: number | undefined
  readonly tokensOut?: number | undefined
  /** In USD times Metering:ExchangeRate. */
  readonly cost?: number | undefined
  /** Names of the credentials of `Credentials` that a request was sent with. */
  readonly credential?: string | undefined
  /** Names of the budgets that count the call, or of the one that refused it, with commas. */
  readonly budget?: string | undefined
  /** Money that these were charged where the answer does not tell the cost. */
  readonly charged?: number | undefined
  /** How a proxied request ended: forwarded, refused, suspended, aborted by the client, broken by the upstream. */
  readonly ending?: string | undefined
  /** Limit that was reached: a value of the label of `agent_gateway_limits_reached_total`. */
  readonly limit?: string | undefined
  /** Name of another gateway on the same database. */
  readonly gateway?: string | undefined
  /** How many of what the message names. */
  readonly count?: number | undefined
  readonly version?: string | undefined
  readonly file?: string | undefined
  readonly error?: unknown
}

type WriteLine = (fields: LogFields, message: string) => void

/** The least severe first. */
const levels = ['debug', 'info', 'warn', 'error'] as const

export type LogLevel = (typeof levels)[number]

export interface Log extends Readonly<Record<LogLevel, WriteLine>> {
  /** A line of level info, for lines that must cost little: its fields are JSON already, `"name":value` with commas. */
  readonly line: (members: string, message: string) => void
}

/** A log and the way to get its last lines out before the process ends. */
export interface ProcessLog extends Log {
  readonly flush: () => void
  /** Changes the least severe level that is written. */
  readonly setLevel: (level: LogLevel | 'silent') => void
  readonly status: () => LogStatus
}

/** Priorities of the journal (sd-daemon(3)), which it takes off the line: so `journalctl -p err` finds errors. */
const priorities: Readonly<Record<LogLevel, string>> = { debug: '<7>', info: '<6>', warn: '<4>', error: '<3>' }

export interface LogOptions {
  /** Called, at most once a minute, when lines cannot be written. */
  readonly complain?: (text: string) => void
  /** Standard output leads to the journal of systemd: lines begin with their priority. */
  readonly isJournal?: boolean
}

/**
 * JSON lines to standard output. Nothing waits for its reader: lines that cannot be written are dropped and counted.
 *
 * @param level the least severe that is written
 */
export function createLog(
  level: LogLevel | 'silent',
  { complain = () => {}, isJournal = false }: LogOptions = {},
): ProcessLog {
  const output = openLogOutput({
    onProblem: problem => complain(`agent-gateway: log lines cannot be written (${problem}); they are dropped`),
    onRecovered: count => log.warn({ count }, 'log lines were dropped: standard output could not be written'),
  })
  const stream = bufferLines(output)
  const log: ProcessLog = {
    ...writers(level, stream, isJournal),
    flush: stream.flush,
    setLevel: changed => void Object.assign(log, writers(changed, stream, isJournal)),
    status: () => output.status(),
  }
  return log
}

let second = -1
let untilSecond = ''

/** The member `time` of a line: the text of a second is made once. */
function isoTime(): string {
  const now = systemClock.now()
  const milliseconds = now % 1_000
  if (now - milliseconds !== second) {
    second = now - milliseconds
    untilSecond = `,"time":"${new Date(second).toISOString().slice(0, -4)}`
  }
  return `${untilSecond}${String(milliseconds).padStart(3, '0')}Z"`
}

function writers(least: LogLevel | 'silent', stream: Lines, isForJournal: boolean): Log {
  const priorityOf = (level: LogLevel) => (isForJournal ? priorities[level] : '')
  const isWritten = (level: LogLevel): boolean => least !== 'silent' && levels.indexOf(level) >= levels.indexOf(least)
  const write = (level: LogLevel): WriteLine => {
    if (!isWritten(level)) return () => {}
    const head = `${priorityOf(level)}{"level":"${level}"`
    return (fields, message) =>
      stream.write(`${head}${isoTime()}${membersOf(fields)},"message":${JSON.stringify(message)}}\n`)
  }
  const infoHead = `${priorityOf('info')}{"level":"info"`
  const line = (members: string, message: string): void => {
    stream.write(`${infoHead}${isoTime()},${members},"message":"${message}"}\n`)
  }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    line: isWritten('info') ? line : () => {},
  }
}

/** The members of a JSON object, each behind a comma. */
function membersOf(fields: LogFields): string {
  const text = fields.error === undefined ? JSON.stringify(fields) : withError(fields)
  return text === '{}' ? '' : `,${text.slice(1, -1)}`
}

function withError(fields: LogFields): string {
  try {
    return JSON.stringify({ ...fields, error: describeError(fields.error) })
  } catch {
    // A part of it, such as its code, is no JSON. The line must not be lost, nor its writer be stopped.
    return JSON.stringify({ ...fields, error: String(fields.error) })
  }
}

/** Details of an error for the log: all causes, and the stack of the outermost error. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return isDescribed(error) ? error : String(error)
  const code = 'code' in error ? { code: error.code } : {}
  const cause = error.cause === undefined ? {} : { cause: causeOf(error.cause) }
  return { name: error.name, message: error.message, ...code, ...cause, stack: error.stack }
}

/** Whether another thread has described it already. */
function isDescribed(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'message' in error && 'name' in error
}

function causeOf(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
}
