/** Lines that were added and removed between two texts. */

export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** Lines that are compared with each other; beyond, all of them count as changed. */
const most = 2_000

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [left, right] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < Math.min(left.length, right.length) && left[start] === right[start]) start++
  let end = 0
  while (end < Math.min(left.length, right.length) - start && left.at(-1 - end) === right.at(-1 - end)) end++
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return [
    ...left.slice(0, start).map(same),
    ...changed(left.slice(start, left.length - end), right.slice(start, right.length - end)),
    ...left.slice(left.length - end).map(same),
  ]
}

/** By the longest common subsequence. */
function changed(left: readonly string[], right: readonly string[]): readonly DiffLine[] {
  if (left.length > most || right.length > most) return [...all('removed', left), ...all('added', right)]
  const width = right.length + 1
  const lengths = new Uint16Array((left.length + 1) * width)
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      lengths[i * width + j] = left[i] === right[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: DiffLine[] = []
  for (let i = 0, j = 0; i < left.length || j < right.length; ) {
    if (i < left.length && j < right.length && left[i] === right[j]) lines.push({ kind: 'same', text: left[i++] ?? '' })
    else if (j >= right.length || (i < left.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'removed', text: left[i++] ?? '' })
      continue
    } else {
      lines.push({ kind: 'added', text: right[j++] ?? '' })
      continue
    }
    j++
  }
  return lines
}

const all = (kind: DiffLine['kind'], lines: readonly string[]): readonly DiffLine[] =>
  lines.map(text => ({ kind, text }))

const signs = { same: ' ', added: '+', removed: '-' }
/** Lines around a change. */
const context = 3

export const nearChanges = (lines: readonly DiffLine[]): readonly boolean[] =>
  lines.map((_, index) =>
    lines.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== 'same'),
  )

/** The changed lines and some around them, as `patch` takes them. */
export function patchOf(name: string, lines: readonly DiffLine[]): string {
  const near = nearChanges(lines)
  const hunks: string[] = []
  let [old, now] = [1, 1]
  for (let index = 0; index < lines.length; ) {
    if (near[index] !== true) {
      old++
      now++
      index++
      continue
    }
    const from = index
    while (near[index] === true) index++
    const hunk = lines.slice(from, index)
    const olds = hunk.filter(({ kind }) => kind !== 'added').length
    const news = hunk.filter(({ kind }) => kind !== 'removed').length
    hunks.push(`@@ -${old},${olds} +${now},${news} @@`, ...hunk.map(({ kind, text }) => signs[kind] + text))
    old += olds
    now += news
  }
  return [`--- ${name}`, `+++ ${name}`, ...hunks, ''].join('\n')
}
