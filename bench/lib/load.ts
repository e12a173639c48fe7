import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Through } from './connection.ts'
import { run, temporaryFolder, versionOf } from './processes.ts'

/** One request, sent again and again. */
export interface Request {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** For slices alone: wrk knows no proxy. */
  readonly through?: Through
}

export interface Load {
  readonly request: Request
  readonly connections: number
  readonly seconds: number
}

/** What the sender of the load saw. Latencies in milliseconds. */
export interface Answers {
  readonly requests: number
  readonly seconds: number
  readonly p50: number
  readonly p99: number
}

/** What every sender prints as its last line. */
interface Report {
  readonly requests: number
  readonly microseconds: number
  /** Answers that were not 2xx, and connections that failed. */
  readonly failed: number
  /** Microseconds. */
  readonly p50: number
  readonly p99: number
}

export interface Sender {
  readonly tool: string
  /** As many requests as the connections carry, each waiting for its answer. */
  send(load: Load): Promise<Answers>
  /** So many requests a second, each counted from when it was due: a slow proxy cannot slow the load down. */
  sendPaced(load: Load, perSecond: number): Promise<Answers>
}

const beside = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/**
 * wrk when it is installed, since it leaves more of its core to the upstream; else autocannon.
 *
 * @param niceness of a sender whose own latencies do not count, so that it takes no time from the one that measures
 */
export async function createSender(cores: string | undefined, niceness = 0): Promise<Sender> {
  const tool = (await versionOf(['wrk', '-v'])) === undefined ? 'autocannon' : 'wrk'
  const nice = niceness === 0 ? [] : ['nice', '-n', String(niceness)]
  const node = (script: string, value: object) => [...nice, process.execPath, beside(script), JSON.stringify(value)]
  return {
    tool,
    send: async load => answersOf(await run(tool === 'wrk' ? wrk(load) : node('autocannon.ts', load), cores)),
    sendPaced: async (load, perSecond) => answersOf(await run(node('paced.ts', { ...load, perSecond }), cores)),
  }
}

const bodies = new Map<string, string>()

function wrk({ request, connections, seconds }: Load): readonly string[] {
  const { url, method, headers, body } = request
  const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const load = ['-t', '1', '-c', String(connections), '-d', `${seconds}s`, '--timeout', '10s']
  const script = ['-s', beside('wrk.lua'), url, '--', method]
  return ['wrk', ...load, ...fields, ...script, ...(body === undefined ? [] : [fileOf(body)])]
}

function fileOf(body: string): string {
  const known = bodies.get(body)
  if (known !== undefined) return known
  const file = join(temporaryFolder(), 'body')
  writeFileSync(file, body)
  bodies.set(body, file)
  return file
}

/** A run in which requests failed measures something else: it is thrown away with everything else. */
function answersOf(output: string): Answers {
  const { requests, microseconds, failed, p50, p99 } = JSON.parse(output.trim().split('\n').at(-1) ?? '') as Report
  if (failed > 0 || requests === 0) throw new Error(`${failed} of ${requests} requests failed:\n${output}`)
  return { requests, seconds: microseconds / 1e6, p50: p50 / 1e3, p99: p99 / 1e3 }
}
