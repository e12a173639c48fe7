import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { versionOf } from './processes.ts'

/** What a run was made on. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly kernel: string
  readonly node: string
  /** Processes that waited for a core in the minute before. Well above 0: something else runs. */
  readonly loadBefore: number
  readonly versions: Readonly<Record<string, string>>
}

/** Cores for the proxy under measurement and for all else, as `taskset -c` takes them; undefined when not pinned. */
export interface Cores {
  readonly proxy: string | undefined
  readonly others: string | undefined
}

/** Pinning needs taskset and two cores: the last is the proxy's alone. */
export async function chooseCores(): Promise<Cores> {
  const count = cpus().length
  if (count < 2 || (await versionOf(['taskset', '--version'])) === undefined) {
    return { proxy: undefined, others: undefined }
  }
  return { proxy: String(count - 1), others: count === 2 ? '0' : `0-${count - 2}` }
}

export async function describeMachine(): Promise<Machine> {
  const tools = {
    wrk: (await versionOf(['wrk', '-v']))?.replace(/^wrk (\S+).*/, '$1'),
    nginx: (await versionOf(['nginx', '-v']))?.replace('nginx version: nginx/', ''),
    haproxy: (await versionOf(['haproxy', '-v']))?.replace(/^HAProxy version (\S+).*/, '$1'),
  }
  const packages = ['undici', 'autocannon', 'http-proxy', 'fastify', '@fastify/http-proxy']
  const versions = [
    ...Object.entries(tools).map(([name, version]) => [name, version ?? 'not installed'] as const),
    ...packages.map(name => [name, packageVersion(name)] as const),
  ]
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    loadBefore: loadavg()[0] ?? 0,
    versions: Object.fromEntries(versions),
  }
}

export function machineText(machine: Machine, cores: Cores): string {
  const { cpu, memoryGiB, kernel, node, loadBefore, versions } = machine
  const pinned =
    cores.proxy === undefined ? 'not pinned' : `proxy on core ${cores.proxy}, load and upstream on ${cores.others}`
  return [
    `${cpu}, ${machine.cores} cores (${pinned}), ${memoryGiB} GiB, Linux ${kernel}, Node ${node}`,
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
    `load average before: ${loadBefore.toFixed(2)}`,
  ].join('\n')
}

function packageVersion(name: string): string {
  try {
    const file = findPackageJSON(name, import.meta.url)
    if (file !== undefined) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
  } catch (error) {
    // The packages of bench/ are installed by `npm run bench:install` alone; most measurements do without.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
  }
  return 'not installed'
}
