import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, type Running, run, start, temporaryFolder } from '../lib/processes.ts'

const certificates = '/usr/lib/squid/security_file_certgen'

/**
 * Starts Squid (squid-openssl of Debian) as one process that opens TLS and caches nothing. It asks for no credentials.
 *
 * @param trusted PEM file with the certificate of the upstream
 */
export async function startSquid(
  { trusted }: { readonly trusted: string },
  cores: string | undefined,
): Promise<{ readonly port: number; readonly ca: string; readonly process: Running }> {
  const [port, folder] = [await freePort(), temporaryFolder()]
  const [ca, key] = [join(folder, 'ca.pem'), join(folder, 'ca.key')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=squid', '-days', '2']
  await run(['openssl', 'req', '-x509', ...kind, '-keyout', key, '-out', ca])
  await run([certificates, '-c', '-s', join(folder, 'certificates'), '-M', '4MB'])
  // Started by root it runs as another user.
  await run(['chmod', '-R', 'a+rwX', folder])
  const template = readFileSync(new URL('squid.conf', import.meta.url), 'utf8')
  const file = join(folder, 'squid.conf')
  const values = { PORT: String(port), FOLDER: folder, TRUSTED: trusted, CERTIFICATES: certificates }
  writeFileSync(
    file,
    template.replaceAll(/^#.*\n/gm, '').replaceAll(/@(\w+)@/g, (_, name: keyof typeof values) => values[name]),
  )
  const process = start({ command: ['squid', '-N', '-f', file], cores })
  await process.listensOn(port)
  return { port, ca, process }
}
