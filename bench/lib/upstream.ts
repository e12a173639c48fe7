import { fileURLToPath } from 'node:url'
import { startNginx } from '../peers/nginx.ts'
import type { Running } from './processes.ts'
import { start, versionOf } from './processes.ts'

/** Body of the answer that the upstream gives, bytes. */
export const answerBytes = 250

export interface Upstream {
  readonly tool: string
  readonly port: number
  readonly process: Running
}

/** The upstream of a run: nginx with one worker when it is installed, since it costs least; else Node. */
export async function startUpstream(cores: string | undefined): Promise<Upstream> {
  if ((await versionOf(['nginx', '-v'])) === undefined) return startNodeUpstream(cores)
  const { port, process } = await startNginx(`return 200 "${'x'.repeat(answerBytes)}";`, cores)
  return { tool: 'nginx', port, process }
}

/** An upstream that also streams and takes bodies: bench/origin.ts. */
export async function startNodeUpstream(cores: string | undefined): Promise<Upstream> {
  const script = fileURLToPath(new URL('../origin.ts', import.meta.url))
  const process_ = start({ command: [process.execPath, script], cores })
  const [, port] = await process_.shows(/listening on (\d+)/)
  return { tool: 'node', port: Number(port), process: process_ }
}
