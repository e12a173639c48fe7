/** Which functions of its sources a process calls for each request: the other end of count-calls.ts. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

/** For node, in a process whose calls are counted. */
export const counterOption: readonly string[] = ['--import', new URL('count-calls.ts', import.meta.url).href]

export interface CountedFunction {
  /** URL of its file. */
  readonly url: string
  readonly name: string
  /** Where it starts in the file, characters. */
  readonly at: number
  readonly calls: number
}

/**
 * In which the answer of a process to a signal is: nothing to the first one, then its counts. In a folder of its own, since a
 * gateway watches the folders above that of its policies.
 */
export const countFile = (pid: number): string => join(tmpdir(), 'agent-gateway-calls', `${pid}.json`)

export interface Called {
  /** Below src/. */
  readonly file: string
  readonly name: string
  /** For each request. */
  readonly calls: number
}

/** From here on the calls of a process are counted. */
export async function beginCount(pid: number): Promise<void> {
  await signal(pid)
}

/** The functions below `src/` of `root` that were called in at least half of so many requests. */
export async function takeCount(pid: number, root: string, requests: number): Promise<readonly Called[]> {
  const base = pathToFileURL(join(root, 'src/')).href
  return (await signal(pid))
    .filter(({ url, calls }) => url.startsWith(base) && calls >= requests / 2)
    .map(({ url, name, at, calls }) => ({
      file: url.slice(base.length),
      name: name === '' ? `(at ${at})` : name,
      calls: calls / requests,
    }))
}

async function signal(pid: number): Promise<readonly CountedFunction[]> {
  const file = countFile(pid)
  process.kill(pid, 'SIGUSR2')
  while (!existsSync(file)) await setTimeout(20)
  const list: readonly CountedFunction[] = JSON.parse(readFileSync(file, 'utf8'))
  rmSync(file)
  return list
}

export const filesOf = (called: readonly Called[]): readonly string[] => [...new Set(called.map(({ file }) => file))]
