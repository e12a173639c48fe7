/** The route is behind the `#`: the gateway serves one page. */
import { computed, signal } from '@preact/signals'

const hash = signal(location.hash)

addEventListener('hashchange', () => {
  hash.value = location.hash
})

/** Path and query, `/agents/1?x=y`; the queue is `/`. */
const target = computed(() => (hash.value.startsWith('#/') ? hash.value.slice(1) : '/'))

export const path = computed(() => target.value.split('?')[0] ?? '/')
export const search = computed(() => new URLSearchParams(target.value.split('?')[1] ?? ''))

function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', `#${to}`)
  else history.pushState(null, '', `#${to}`)
  hash.value = location.hash
}

/** Takes up an address that was opened a moment ago, of which no event came yet. Returns the path. */
export function currentPath(): string {
  hash.value = location.hash
  return path.peek()
}

/** Changes the query of this route. */
export function setSearch(values: Readonly<Record<string, string | undefined>>): void {
  currentPath()
  const next = new URLSearchParams(search.value)
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  go(path.value + (text === '' ? '' : `?${text}`), { replace: true })
}

/** For `href`. Parts are encoded. */
export function hrefOf(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`
}

/** The parts of a path that `pattern` names with a colon; undefined when it is another route. */
export function match(pattern: string, given: string): Readonly<Record<string, string>> | undefined {
  const wanted = pattern.split('/')
  const parts = given.split('/')
  if (wanted.length !== parts.length) return undefined
  const named: Record<string, string> = {}
  for (const [index, want] of wanted.entries()) {
    const part = parts[index] ?? ''
    if (want.startsWith(':')) named[want.slice(1)] = decode(part)
    else if (want !== part) return undefined
  }
  return named
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
