/** How this machine finds the addresses of names: what /etc/hosts, resolv.conf(5) and nsswitch.conf(5) say. */
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'

export interface NameRules {
  /** Addresses of the names in the hosts file, by lower-cased name. */
  readonly hosts: ReadonlyMap<string, readonly string[]>
  /** Domains in which names with fewer than `ndots` dots are looked for first. */
  readonly search: readonly string[]
  readonly ndots: number
  /** Names are also found by other means than the hosts file and DNS, such as LDAP or mDNS. */
  readonly hasOtherSources: boolean
}

export interface NameFiles {
  readonly hosts: string
  readonly resolvConf: string
  readonly nsswitch: string
}

const systemFiles: NameFiles = {
  hosts: '/etc/hosts',
  resolvConf: '/etc/resolv.conf',
  nsswitch: '/etc/nsswitch.conf',
}

/** Sources of names that the gateway reads itself, or that answer over DNS (systemd-resolved) or for this machine. */
const ownSources: ReadonlySet<string> = new Set(['files', 'dns', 'resolve', 'myhostname'])

/** Largest `ndots` (resolv.conf(5)). */
const maxDots = 15

/** Reads the rules, and again when one of the files has changed. */
export function createNameRules(files: NameFiles = systemFiles): () => NameRules {
  let cache: { readonly stamp: string; readonly rules: NameRules } | undefined
  return () => {
    const stamp = Object.values(files).map(stampOf).join()
    if (cache?.stamp !== stamp) cache = { stamp, rules: readRules(files) }
    return cache.rules
  }
}

/** The names to ask for, in order (resolv.conf(5), `search` and `ndots`). */
export function candidates(name: string, { search, ndots }: NameRules): readonly string[] {
  const dots = name.split('.').length - 1
  const searched = search.map(domain => `${name}.${domain}`)
  return dots >= ndots ? [name, ...searched] : [...searched, name]
}

function readRules({ hosts, resolvConf, nsswitch }: NameFiles): NameRules {
  const sources = /^[ \t]*hosts:(.*)$/m.exec(read(nsswitch))?.[1] ?? 'files dns'
  return {
    hosts: parseHosts(read(hosts)),
    ...parseResolvConf(read(resolvConf)),
    hasOtherSources: wordsOf(sources.replace(/\[.*?\]/g, ' ')).some(source => !ownSources.has(source)),
  }
}

function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = wordsOf(line)
    if (isIP(address) === 0) continue
    for (const name of names) {
      const lower = name.toLowerCase()
      const before = hosts.get(lower)
      if (before === undefined) hosts.set(lower, [address])
      else if (!before.includes(address)) before.push(address)
    }
  }
  return hosts
}

/** `domain` and `search` replace each other: the last one counts. */
function parseResolvConf(text: string): Pick<NameRules, 'search' | 'ndots'> {
  let search: readonly string[] = []
  let ndots = 1
  for (const line of text.split('\n')) {
    const [keyword, ...values] = wordsOf(line)
    if (keyword === 'search') search = values
    else if (keyword === 'domain') search = values.slice(0, 1)
    else if (keyword === 'options') ndots = dotsOf(values) ?? ndots
  }
  return { search: search.map(withoutDots).filter(domain => domain !== ''), ndots }
}

function dotsOf(options: readonly string[]): number | undefined {
  const option = options.findLast(value => /^ndots:\d+$/.test(value))
  return option === undefined ? undefined : Math.min(maxDots, Number(option.slice('ndots:'.length)))
}

const withoutDots = (domain: string): string => domain.toLowerCase().replace(/^\.+|\.+$/g, '')

/** The words of a line, without its comment. */
const wordsOf = (line: string): string[] =>
  line
    .replace(/[#;].*/, '')
    .split(/\s+/)
    .filter(Boolean)

/** A file that is missing says nothing. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path)
    return `${mtimeMs} ${size} ${ino}`
  } catch {
    return ''
  }
}
