import { join } from 'node:path'
import { freePort, type Running, start, temporaryFolder } from '../lib/processes.ts'

/**
 * Starts mitmproxy without a screen, as a forward proxy that asks for a password and opens TLS.
 *
 * @param trusted PEM file with the certificate of the upstream
 */
export async function startMitmproxy(
  { trusted, password }: { readonly trusted: string; readonly password: string },
  cores: string | undefined,
): Promise<{ readonly port: number; readonly ca: string; readonly process: Running }> {
  const [port, folder] = [await freePort(), temporaryFolder()]
  const options = [`confdir=${folder}`, `proxyauth=bench:${password}`, `ssl_verify_upstream_trusted_ca=${trusted}`]
  // Else it keeps every exchange in memory.
  const light = ['connection_strategy=lazy', 'http2=false', 'flow_detail=0', 'termlog_verbosity=error']
  const process = start({
    command: ['mitmdump', '-q', '-p', String(port), ...[...options, ...light].flatMap(option => ['--set', option])],
    cores,
  })
  await process.listensOn(port)
  return { port, ca: join(folder, 'mitmproxy-ca-cert.pem'), process }
}
