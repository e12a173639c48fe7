/** A CPU profile as V8 writes it (Chrome DevTools protocol, Profiler.Profile). Times in microseconds. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  /** Ids of the innermost frames, and the time since the sample before. */
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
  readonly startTime: number
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

/** CPU time by some name, microseconds; `total` includes what was called from there. */
export interface Share {
  readonly name: string
  readonly self: number
  readonly total: number
}

export interface Shares {
  readonly functions: readonly Share[]
  readonly files: readonly Share[]
}

const notWork = new Set(['(root)', '(idle)'])

/** Sums up the samples taken between two moments of the monotonic clock, microseconds. */
export function sharesOf(profile: CpuProfile, from: number, to: number): Shares {
  const selfById = selfTimes(profile, from, to)
  const functions = new Map<string, { self: number; total: number }>()
  const files = new Map<string, { self: number; total: number }>()
  const byId = new Map(profile.nodes.map(node => [node.id, node]))
  const visit = (node: ProfileNode, above: readonly string[]): number => {
    const names = [functionName(node), fileName(node)] as const
    const self = notWork.has(node.callFrame.functionName) ? 0 : (selfById.get(node.id) ?? 0)
    const below = [...above, ...names]
    let total = self
    for (const id of node.children ?? []) total += visit(byId.get(id) as ProfileNode, below)
    // What calls itself, directly or not, counts once.
    add(functions, names[0], self, above.includes(names[0]) ? 0 : total)
    add(files, names[1], self, above.includes(names[1]) ? 0 : total)
    return total
  }
  const root = profile.nodes[0]
  if (root !== undefined) visit(root, [])
  return { functions: sorted(functions), files: sorted(files) }
}

function selfTimes({ samples, timeDeltas, startTime }: CpuProfile, from: number, to: number): Map<number, number> {
  const times = new Map<number, number>()
  let now = startTime
  samples.forEach((id, index) => {
    // A sample stands for the time until the next one.
    now += timeDeltas[index] ?? 0
    if (now >= from && now <= to) times.set(id, (times.get(id) ?? 0) + (timeDeltas[index + 1] ?? 0))
  })
  return times
}

function add(sums: Map<string, { self: number; total: number }>, name: string, self: number, total: number): void {
  const sum = sums.get(name) ?? { self: 0, total: 0 }
  sum.self += self
  sum.total += total
  sums.set(name, sum)
}

const sorted = (sums: ReadonlyMap<string, { self: number; total: number }>): readonly Share[] =>
  [...sums].map(([name, sum]) => ({ name, ...sum })).sort((left, right) => right.self - left.self)

function functionName({ callFrame }: ProfileNode): string {
  const name = callFrame.functionName || '(anonymous)'
  return callFrame.url === '' ? name : `${name} ${shortUrl(callFrame.url)}:${callFrame.lineNumber + 1}`
}

/** Functions without a file are those of V8 and of Node in C++: system calls, mostly. */
function fileName({ callFrame }: ProfileNode): string {
  if (callFrame.url !== '') return shortUrl(callFrame.url)
  return callFrame.functionName.startsWith('(') ? callFrame.functionName : '(native)'
}

const shortUrl = (url: string): string =>
  url
    .replace(/^file:\/\//, '')
    .replace(/^.*\/node_modules\//, '')
    .replace(/^.*\/(src|bench)\//, '$1/')
