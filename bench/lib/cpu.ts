import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks a second, the unit of /proc/PID/stat (proc(5)). */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** CPU time of a process so far, user and system of all its threads, microseconds. Resolution: 10 ms as a rule. */
export function cpuMicroseconds(pid: number): number {
  return microseconds(cpuFields(pid).slice(0, 2))
}

/**
 * The same to the nanosecond, for spans too short for ticks: exact for threads that are asleep just then
 * (schedstat, Documentation/scheduler/sched-stats of Linux).
 */
export function cpuExactly(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const nanoseconds = (thread: string): number => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      // Ended meanwhile.
      return 0
    }
  }
  return threads.reduce((sum, thread) => sum + nanoseconds(thread), 0) / 1e3
}

/** CPU time of the processes that a process has started and that still run, microseconds. */
export function cpuOfChildren(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return children.reduce((sum, child) => sum + cpuMicroseconds(Number(child)), 0)
}

/** CPU time of this process and of all its children that have ended, microseconds. */
export const ownMicroseconds = (): number => microseconds(cpuFields('self'))

/** utime, stime and, for children that have ended, cutime and cstime. */
function cpuFields(pid: number | 'self'): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name of the program may hold spaces: fields are counted from behind its parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15)
}

const microseconds = (ticks: readonly (string | undefined)[]): number =>
  (ticks.reduce((sum, field) => sum + Number(field), 0) * 1e6) / ticksPerSecond

/** Resident memory of a process now, bytes. */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1] ?? 0) * 1024
}

/** Resident memory by what it holds, bytes. */
export interface ResidentParts {
  /** The program and its libraries, mapped from their files. */
  readonly files: number
  /** What glibc keeps in its first heap. */
  readonly malloc: number
  /** The heaps of V8, its code, stacks, and long pieces of malloc. */
  readonly other: number
}

export function residentParts(pid: number): ResidentParts {
  const parts = { files: 0, malloc: 0, other: 0 }
  let part: keyof ResidentParts = 'other'
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const [, name] = /^[0-9a-f]+-[0-9a-f]+(?: \S+){4} *(.*)$/.exec(line) ?? []
    if (name !== undefined) part = name === '[heap]' ? 'malloc' : name.startsWith('/') ? 'files' : 'other'
    const [, kibibytes] = /^Rss: +(\d+)/.exec(line) ?? []
    if (kibibytes !== undefined) parts[part] += Number(kibibytes) * 1_024
  }
  return parts
}

/** CPU time that all processes of the machine took so far, microseconds. */
export function machineMicroseconds(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/)
  return microseconds([user, nice, system, irq, softirq])
}

/** Time that the main thread of a process was ready to run, and something else had the core, microseconds. */
export function waitedMicroseconds(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e3
}
