import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, type Running, start, temporaryFolder } from '../lib/processes.ts'

/**
 * Starts nginx as one process.
 *
 * @param location what it does with every request, in its own language
 * @param blocks what stands beside the server
 */
export async function startNginx(
  location: string,
  cores: string | undefined,
  blocks = '',
): Promise<{ readonly port: number; readonly process: Running }> {
  const folder = temporaryFolder()
  const port = await freePort()
  const template = readFileSync(new URL('nginx.conf', import.meta.url), 'utf8')
  const text = template
    .replaceAll(/^#.*\n/gm, '')
    .replace('@PORT@', String(port))
    .replace('@LOCATION@', location)
    .replace('@BLOCKS@', blocks)
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, text)
  const process = start({ command: ['nginx', '-p', folder, '-c', file, '-e', 'stderr'], cores })
  await process.listensOn(port)
  return { port, process }
}

/** nginx as a plain proxy over kept connections: it checks nothing. */
export function startNginxProxy(upstreamPort: number, cores: string | undefined) {
  const location = 'proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";'
  const blocks = `upstream origin { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 1000000000; }`
  return startNginx(location, cores, blocks)
}
