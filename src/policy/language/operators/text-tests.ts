import { AddressRanges } from '../../../base/address.ts'
import { type HostPattern, matchesHost, parseHostPattern } from '../../../base/host.ts'
import { compileDetectors } from '../../detectors/detectors.ts'
import { charge, findIn } from '../../turns/evaluation.ts'
import { LongNumber } from '../../values/numbers.ts'
import { False, True, type Truth, Unreadable } from '../../values/truth.ts'
import { limits } from '../model.ts'
import type { ElementTest } from './equality.ts'
import { foldValue } from './folding.ts'
import { includes } from './includes.ts'
import { compileGlob, compilePathPattern, type TextTest } from './patterns.ts'
import { compileRegex } from './regex.ts'
import { fold, ignoresCase, type Operand, readWords, WrongValue } from './values.ts'

/** Longest text that a pattern is run on, UTF-16 units; longer is unreadable. */
const scanLimit = 65_536
/** Steps that a search with a pattern takes on the shortest text. */
const stepsOfSearch = 32
/** Most steps of one glob: pattern length times text length. */
const globBudget = 64 * scanLimit

/** Text of a string, number or boolean; null has none; objects and lists cannot be compared as text. */
function onText(element: unknown, test: (text: string) => Truth): Truth {
  if (typeof element === 'string') return test(element)
  if (typeof element === 'number' || typeof element === 'boolean' || element instanceof LongNumber) {
    return test(String(element))
  }
  return element === null ? False : Unreadable
}

function truthOf(value: boolean): Truth {
  return value ? True : False
}

export type PieceName = 'startsWith' | 'endsWith' | 'contains'

export function buildPiece(name: PieceName, operand: Operand): ElementTest | WrongValue {
  if (operand.value === '') return new WrongValue(`${name} needs a non-empty value`)
  const folded = ignoresCase(operand)
  const piece = folded ? fold(operand.value) : operand.value
  const holds = pieceTest(name, piece)
  return element => onText(element, text => truthOf(holds(folded ? foldValue(text) : text)))
}

function pieceTest(name: PieceName, piece: string): TextTest {
  if (name === 'startsWith') return text => text.startsWith(piece)
  return name === 'endsWith' ? text => text.endsWith(piece) : includes(piece)
}

export function buildLike(operand: Operand): ElementTest | WrongValue {
  const refused = checkPattern(operand.value)
  if (refused !== undefined) return refused
  const folded = ignoresCase(operand)
  const glob = compileGlob(folded ? fold(operand.value) : operand.value)
  return element =>
    onText(element, text => {
      if (text.length * operand.value.length > globBudget) return Unreadable
      return truthOf(glob(folded ? foldValue(text) : text))
    })
}

export function buildMatches(operand: Operand): ElementTest | WrongValue {
  const refused = checkPattern(operand.value)
  if (refused !== undefined) return refused
  const regex = compileRegex(operand.value, ignoresCase(operand))
  if (typeof regex === 'string') return new WrongValue(regex)
  return element =>
    onText(element, text => {
      if (text.length > scanLimit) return Unreadable
      charge(stepsOfSearch + text.length)
      const found = regex.search(text)
      return found === undefined ? Unreadable : truthOf(found)
    })
}

function checkPattern(pattern: string): WrongValue | undefined {
  if (pattern === '') return new WrongValue('the pattern must not be empty')
  if (pattern.length <= limits.regex) return undefined
  return new WrongValue(`a pattern must have at most ${limits.regex} characters`, 'E_LIMIT')
}

export function buildPathMatches(operand: Operand): ElementTest | WrongValue {
  if (operand.field.text !== 'input.path') return new WrongValue('pathMatches must be used on input.path')
  const words = readWords(operand.value)
  if (words instanceof WrongValue) return words
  const tests: TextTest[] = []
  for (const word of words) {
    const test = compilePathPattern(operand.ignoreCase ? fold(word) : word)
    if (test === undefined) return new WrongValue(`a path pattern must begin with a slash: ${JSON.stringify(word)}`)
    tests.push(test)
  }
  return element => {
    const path = operand.ignoreCase ? fold(String(element)) : String(element)
    return truthOf(tests.some(test => test(path)))
  }
}

export function buildHostMatches(operand: Operand): ElementTest | WrongValue {
  const words = readWords(operand.value)
  if (words instanceof WrongValue) return words
  const patterns: HostPattern[] = []
  for (const word of words) {
    const pattern = parseHostPattern(word.toLowerCase())
    if (pattern === undefined) return new WrongValue(`${JSON.stringify(word)} is not a host pattern`)
    patterns.push(pattern)
  }
  return element => {
    if (typeof element !== 'string') return False
    const host = element.toLowerCase()
    return truthOf(patterns.some(pattern => matchesHost(pattern, host)))
  }
}

export function buildIpIn(operand: Operand): ElementTest | WrongValue {
  const words = readWords(operand.value)
  if (words instanceof WrongValue) return words
  const ranges = new AddressRanges()
  const wrong = words.find(word => !ranges.add(word))
  if (wrong !== undefined) return new WrongValue(`${JSON.stringify(wrong)} is not an address or CIDR range`)
  return element => truthOf(typeof element === 'string' && ranges.has(element))
}

export function buildDetects(operand: Operand): ElementTest | WrongValue {
  const words = readWords(operand.value)
  if (words instanceof WrongValue) return words
  const search = compileDetectors(words)
  if (typeof search === 'string') return new WrongValue(search)
  return element => onText(element, text => truthOf(findIn(search, text) !== undefined))
}
