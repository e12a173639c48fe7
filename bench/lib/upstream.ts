import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNginx } from '../peers/nginx.ts'
import { type Running, run, start, temporaryFolder, versionOf } from './processes.ts'

/** Body of the answer that the upstream gives, bytes. */
export const answerBytes = 250

export interface Upstream {
  readonly tool: string
  readonly port: number
  /** `http://127.0.0.1:PORT`. */
  readonly url: string
  /** Certificate that it shows, a file in PEM; undefined without TLS. */
  readonly certificate: string | undefined
  readonly process: Running
}

const plain = (tool: string, port: number, process: Running): Upstream => ({
  ...{ tool, port, process },
  ...{ url: `http://127.0.0.1:${port}`, certificate: undefined },
})

/** The upstream of a run: nginx with one worker when it is installed, since it costs least; else Node. */
export async function startUpstream(cores: string | undefined): Promise<Upstream> {
  if ((await versionOf(['nginx', '-v'])) === undefined) return startNodeUpstream(cores)
  const { port, process } = await startNginx(`return 200 "${'x'.repeat(answerBytes)}";`, cores)
  return plain('nginx', port, process)
}

const origin = fileURLToPath(new URL('../origin.ts', import.meta.url))

/** An upstream that also streams and takes bodies: bench/origin.ts. */
export async function startNodeUpstream(cores: string | undefined): Promise<Upstream> {
  const child = start({ command: [process.execPath, origin], cores })
  const [, port] = await child.shows(/listening on (\d+)/)
  return plain('node', Number(port), child)
}

/** Name in the certificate, beside the address: HAProxy verifies names alone. */
export const tlsName = 'upstream.bench'

/** PEM files of a certificate for this machine, made for this run, and of its key. */
export async function makeCertificate(): Promise<{ readonly key: string; readonly certificate: string }> {
  const folder = temporaryFolder()
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=bench', '-addext', `subjectAltName=IP:127.0.0.1,DNS:${tlsName}`, '-days', '2']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  await run(['openssl', 'req', '-x509', ...kind, ...subject, '-keyout', key, '-out', certificate])
  return { key, certificate }
}

/** The same in TLS. */
export async function startTlsUpstream(cores: string | undefined): Promise<Upstream> {
  const { key, certificate } = await makeCertificate()
  const child = start({ command: [process.execPath, origin, key, certificate], cores })
  const [, port = ''] = await child.shows(/listening on (\d+)/)
  return { tool: 'node', port: Number(port), url: `https://127.0.0.1:${port}`, certificate, process: child }
}
