import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, type Running, start, temporaryFolder } from '../lib/processes.ts'
import type { DenyRule } from '../lib/rules.ts'
import { tlsName, type Upstream } from '../lib/upstream.ts'

export interface HaproxySetup {
  readonly upstream: Pick<Upstream, 'port' | 'url' | 'certificate'>
  /** Key of the tokens. */
  readonly secret: string
  readonly rules: readonly DenyRule[]
  /** PEM file with a certificate and its key, to end the TLS of clients. */
  readonly certificate?: string
}

/** The certificate is verified, name and all. */
const tlsTo = (certificate: string): string =>
  `ssl verify required sni str(${tlsName}) verifyhost ${tlsName} ca-file ${certificate}`

/** Starts HAProxy as one process with one thread. */
export async function startHaproxy(
  setup: HaproxySetup,
  cores: string | undefined,
): Promise<{ readonly port: number; readonly process: Running }> {
  const port = await freePort()
  const file = join(temporaryFolder(), 'haproxy.cfg')
  const { upstream } = setup
  const scheme = upstream.certificate === undefined ? 'http' : 'https'
  const rules = setup.rules.map(
    ({ method, host, path }) =>
      `http-request deny deny_status 403 if { method ${method} } { path_beg /proxy/${scheme}://${host}${path} }`,
  )
  const template = readFileSync(new URL('haproxy.cfg', import.meta.url), 'utf8')
  const text = template
    .replaceAll(/^ *#.*\n/gm, '')
    .replace('@PORT@', String(port))
    .replace('@BIND@', setup.certificate === undefined ? '' : `ssl crt ${setup.certificate} alpn http/1.1`)
    .replaceAll('@SCHEME@', scheme)
    .replace('@UPSTREAM@', String(upstream.port))
    .replace('@TLS@', upstream.certificate === undefined ? '' : tlsTo(upstream.certificate))
    .replace('@SECRET@', setup.secret)
    .replace('@RULES@', rules.join('\n  '))
  writeFileSync(file, text)
  const process = start({ command: ['haproxy', '-db', '-q', '-f', file], cores })
  await process.listensOn(port)
  return { port, process }
}
