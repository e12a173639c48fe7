/** What this machine gives the gateway: open files, and the data folder. */
import { readdir, stat, statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { asError } from '../../base/as-error.ts'
import { usesPostgres } from '../../gateway/storage.ts'
import { maxOpenFiles } from '../../telemetry/process.ts'
import { type CheckResult, type DoctorParts, fail, ok, warn } from './result.ts'

/** Files that are open beside connections: the database, the log, libraries, watched folders. */
const otherFiles = 256

/** @param limit undefined where the system does not say */
export async function fileFindings(
  { config }: Pick<DoctorParts, 'config'>,
  limit = maxOpenFiles(),
): Promise<readonly CheckResult[]> {
  if (limit === undefined) return [ok('the limit of open files is not known on this system')]
  const { System, Proxy: proxy } = config
  const wanted = System.Server.MaxConnections + proxy.MaxConnections + otherFiles
  const text = `this process may open ${limit} files`
  if (limit >= wanted) return [ok(text)]
  const remedy = `Set LimitNOFILE=${wanted} in the unit, or "ulimit -n ${wanted}" in the shell that starts it, or lower System:Server:MaxConnections and Proxy:MaxConnections.`
  return [(limit < otherFiles * 2 ? fail : warn)(`${text}; all connections together can need ${wanted}`, remedy)]
}

/** Below this SQLite and its log soon find no room. */
const leastBytes = 67_108_864
const megabytes = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MB`

/** With PostgreSQL the folder has nothing that a gateway needs. */
export async function dataFindings({ config, baseDirectory }: DoctorParts): Promise<readonly CheckResult[]> {
  if (usesPostgres(config)) return []
  const folder = resolve(baseDirectory, config.Storage.DataDirectory)
  try {
    return [spaceOf(folder, await statfs(folder), config.HumanInTheLoop.MaxStoredBytes), ...(await ownersIn(folder))]
  } catch (error) {
    const { code } = asError(error)
    if (code === 'ENOENT') return [ok(`${folder} is not there yet: the first start makes it`)]
    const remedy = 'Run this as the user of the gateway; then give the folder to that user with chown.'
    return [fail(`${folder} cannot be read (${code})`, remedy)]
  }
}

interface FileSystem {
  readonly bavail: number
  readonly bsize: number
}

export function spaceOf(folder: string, { bavail, bsize }: FileSystem, mayHold: number): CheckResult {
  const free = bavail * bsize
  const text = `${folder} has ${megabytes(free)} free`
  if (free < leastBytes) return fail(text, 'Free space there, or move Storage:DataDirectory: changes will be refused.')
  if (free >= mayHold + leastBytes) return ok(text)
  return warn(
    `${text}; held requests alone may take ${megabytes(mayHold)}`,
    'Free space there, or lower HumanInTheLoop:MaxStoredBytes.',
  )
}

/** A command that root ran may have left files that the gateway cannot write. */
export async function ownersIn(folder: string, self = process.geteuid?.()): Promise<readonly CheckResult[]> {
  const { uid, mode } = await stat(folder)
  const findings: CheckResult[] = []
  if (self !== undefined && self !== uid && self !== 0) {
    findings.push(
      fail(`${folder} belongs to user ${uid}, this is user ${self}`, 'Run this as the user of the gateway.'),
    )
  }
  const names = await readdir(folder)
  const owners = await Promise.all(names.map(async name => (await stat(join(folder, name))).uid))
  const foreign = names.filter((_, index) => owners[index] !== uid)
  if (foreign.length > 0) {
    const remedy = `Stop the gateway, and run: chown -R ${uid} ${folder}`
    findings.push(fail(`${foreign.join(', ')} in ${folder} belong to another user than the folder`, remedy))
  }
  if ((mode & 0o007) !== 0) {
    findings.push(warn(`every user of this machine can look into ${folder}`, `Run: chmod o= ${folder}`))
  }
  return findings.length > 0 ? findings : [ok(`${folder} and its files belong to one user`)]
}
