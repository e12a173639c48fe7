import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Running } from '../lib/processes.ts'
import { freePort, start, temporaryFolder } from '../lib/processes.ts'
import type { DenyRule } from '../lib/rules.ts'

export interface HaproxySetup {
  readonly upstreamPort: number
  /** Key of the tokens. */
  readonly secret: string
  readonly rules: readonly DenyRule[]
}

/** Starts HAProxy as one process with one thread. */
export async function startHaproxy(
  setup: HaproxySetup,
  cores: string | undefined,
): Promise<{ readonly port: number; readonly process: Running }> {
  const port = await freePort()
  const file = join(temporaryFolder(), 'haproxy.cfg')
  const rules = setup.rules.map(
    ({ method, host, path }) =>
      `http-request deny deny_status 403 if { method ${method} } { path_beg /proxy/http://${host}${path} }`,
  )
  const template = readFileSync(new URL('haproxy.cfg', import.meta.url), 'utf8')
  const text = template
    .replaceAll(/^ *#.*\n/gm, '')
    .replace('@PORT@', String(port))
    .replace('@UPSTREAM@', String(setup.upstreamPort))
    .replace('@SECRET@', setup.secret)
    .replace('@RULES@', rules.join('\n  '))
  writeFileSync(file, text)
  const process = start({ command: ['haproxy', '-db', '-q', '-f', file], cores })
  await process.listensOn(port)
  return { port, process }
}
