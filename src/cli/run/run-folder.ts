/** The folder with the files of one run. */
import { lstat, mkdtemp, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asError } from '../../base/as-error.ts'

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return asError(error).code === 'EPERM'
  }
}

/**
 * Does work with a folder of its own, and removes it. Folders of runs that were killed are removed too.
 *
 * @param pid of this process
 */
export async function inRunFolder<T>(pid: number, work: (folder: string) => Promise<T>): Promise<T> {
  const prefix = `agent-gateway-run-${await pidNamespace()}-`
  await removeLeftOver(prefix)
  const folder = await mkdtemp(join(tmpdir(), `${prefix}${pid}-`))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Containers may share the folder for temporary files: a process id says nothing about those of another one. */
async function pidNamespace(): Promise<string> {
  const link = await readlink('/proc/self/ns/pid').catch(() => '')
  return link.replace(/\D/g, '') || '0'
}

async function removeLeftOver(prefix: string): Promise<void> {
  const names = await readdir(tmpdir()).catch(() => [])
  for (const name of names.filter(one => one.startsWith(prefix))) {
    const [, pid] = /^(\d+)-/.exec(name.slice(prefix.length)) ?? []
    if (pid === undefined || isRunning(Number(pid))) continue
    const folder = join(tmpdir(), name)
    const found = await lstat(folder).catch(() => undefined)
    // Others may make a folder or a link of that name.
    const isOurs = found?.isDirectory() === true && found.uid === process.getuid?.()
    if (isOurs) await rm(folder, { recursive: true, force: true })
  }
}
