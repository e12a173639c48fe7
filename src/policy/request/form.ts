/**
 * What a form or a query says. Frameworks differ: PHP takes `a.b` for `a_b` and `a[]` for a list `a`, Rack divides pairs at
 * `;`, ASP.NET ignores letter case. So a parameter is read only if every one of them finds the same values.
 */
import { spend } from '../turns/evaluation.ts'
import { missing, unreadable } from '../values/truth.ts'
import { foldName, readsLike } from './names.ts'

/** Names and values; a repeated name gives a list. Own properties of an object without prototype. */
type Pairs = Record<string, string | string[]>

/** PHP and Express drop further parameters, without an error. */
const maxVariables = 1_000
/** Names that are compared in one step. */
const namesPerStep = 4

export class Form {
  readonly pairs: Pairs = Object.create(null)
  /** Different names. */
  count = 0
  #parameters = 0
  /** Names whose values servers read in different ways. */
  #doubtful: Set<string> | undefined
  #hasOddNames = false
  #names: readonly string[] | undefined
  /** How frameworks may read the names that they change: first parts, and whole names with underscores. */
  #changed: ReadonlySet<string> | undefined

  /** @param isDoubtful servers read the pair in different ways */
  add(name: string, value: string, isDoubtful: boolean): void {
    const known = this.pairs[name]
    if (known === undefined) {
      this.pairs[name] = value
      this.count++
      this.#hasOddNames ||= isOdd(name)
    } else if (Array.isArray(known)) known.push(value)
    else this.pairs[name] = [known, value]
    if (!isDoubtful && ++this.#parameters <= maxVariables) return
    this.#doubtful ??= new Set()
    this.#doubtful.add(name)
  }

  /** The values of a parameter: `missing`, or `unreadable` where some server finds others. Call it when all are added. */
  valueOf(name: string): string | string[] | typeof missing | typeof unreadable {
    if (this.#isDoubtful(name)) return unreadable
    return this.pairs[name] ?? missing
  }

  /** All names; `unreadable` where some server divides the pairs in another way. */
  get names(): readonly string[] | typeof unreadable {
    return this.#doubtful === undefined ? Object.keys(this.pairs) : unreadable
  }

  #isDoubtful(name: string): boolean {
    if (this.#doubtful !== undefined && (this.#doubtful.has(name) || name.includes(';'))) return true
    this.#names ??= Object.keys(this.pairs)
    const names = this.#names
    spend(Math.ceil(names.length / namesPerStep))
    for (let at = 0; at < names.length; at++) {
      const other = names[at]!
      if (other.length === name.length && readsLike(other, name)) return true
    }
    if (!isOdd(name) && !this.#hasOddNames) return false
    // So many are not compared: most of them are doubtful anyway.
    if (names.length > maxVariables) return true
    return isOdd(name) ? this.#hasLike(partsOf(name), name) : this.#changedNames().has(foldName(name))
  }

  #changedNames(): ReadonlySet<string> {
    if (this.#changed !== undefined) return this.#changed
    const changed = new Set<string>()
    for (const name of Object.keys(this.pairs)) {
      if (!isOdd(name)) continue
      spend(stepsPerOddName)
      const parts = partsOf(name)
      changed.add(parts[0]!).add(joined(parts))
    }
    this.#changed = changed
    return changed
  }

  #hasLike(parts: readonly string[], name: string): boolean {
    const names = Object.keys(this.pairs)
    const all = names.map(each => {
      spend(stepsPerOddName)
      return partsOf(each)
    })
    return all.some((other, at) => names[at] !== name && mayMeet(parts, other)) || mayMove(name, names, all)
  }
}

const stepsPerOddName = 32

/** Whether some framework changes the name, or divides it. */
function isOdd(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    switch (name.charCodeAt(at)) {
      case 0:
      case 32:
      case 37:
      case 46:
      case 91:
      case 93:
        return true
    }
  }
  return false
}

/**
 * The parts of a name, as PHP, Rack, qs and Spring divide it: `a[b][]` and `a.b` have the parts a and b. Whatever letter
 * case they have, with the spaces that PHP drops, and up to the zero byte where it stops. An empty part may be any.
 */
function partsOf(name: string): string[] {
  const [text = ''] = name.split('\0', 1)
  const plain = foldName(text.replace(/%u([0-9a-f]{4})/gi, unescaped))
    .replace(/^[ [\]]+/, '')
    .replaceAll(' ', '_')
  return plain.replace(/\](?=[.[])|\]$/g, '').split(/[.[\]]/)
}

/** As ASP.NET on Windows reads it. */
const unescaped = (_: string, hex: string): string => String.fromCharCode(Number.parseInt(hex, 16))

/** As PHP writes a name with dots and with brackets that are not closed. */
const joined = (parts: readonly string[]): string => parts.join('_')

function mayMeet(one: readonly string[], other: readonly string[]): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return short.every((part, at) => part === long[at] || part === '' || long[at] === '') || joined(one) === joined(other)
}

/**
 * Whether an element of a list that the name goes through may be another one: Express moves elements to the places of those
 * that are missing.
 *
 * @param all the parts of the names
 */
function mayMove(name: string, names: readonly string[], all: readonly (readonly string[])[]): boolean {
  const parts = partsOf(name)
  return [...name.matchAll(/[.[](\d+)(?=[\].[]|$)/g)].some(({ index, 1: digits }) => {
    const before = name.slice(0, index + 1)
    // Those that every framework takes for elements of the same list.
    const sure = names.filter(each => each.startsWith(before)).map(each => /^\d+/.exec(each.slice(before.length))?.[0])
    const indexes = new Set(sure)
    if ([...indexes].some(each => each === undefined || Number(each) >= indexes.size)) return true
    const depth = partsOf(before).length - 1
    const beside = all.filter(other => parts.slice(0, depth).every((part, at) => other[at] === part))
    return !indexes.has(digits) && beside.some(other => /^\d+$/.test(other[depth] ?? '') && !indexes.has(other[depth]))
  })
}
