import { AddressRanges } from '../../../base/address.ts'
import { matchesAnyHost, parseHostPattern } from '../../../base/host.ts'
import { compileDetectors, type DetectorSearch } from '../../detectors/detectors.ts'
import { charge, findIn, resume } from '../../turns/evaluation.ts'
import { LongNumber } from '../../values/numbers.ts'
import { False, True, type Truth, Unreadable } from '../../values/truth.ts'
import { limits } from '../model.ts'
import { ConditionError } from '../problems.ts'
import type { ElementTest } from './equality.ts'
import { foldValue } from './folding.ts'
import { includes } from './includes.ts'
import { compileGlob, compilePathPattern, type TextTest } from './patterns.ts'
import { compileRegex } from './regex.ts'
import { fold, ignoresCase, type Operand, readWords } from './values.ts'

/** Longest text that a pattern is run on, UTF-16 units; longer is unreadable. */
const scanLimit = 65_536
/** Steps that a search with a pattern takes on the shortest text. */
const stepsOfSearch = 32
/** Maximum of steps of one glob: pattern length times text length. */
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

export function buildPiece(name: PieceName, operand: Operand): ElementTest {
  if (operand.value === '') throw new ConditionError(`${name} must have a value that is not empty`)
  const folded = ignoresCase(operand)
  const piece = folded ? fold(operand.value) : operand.value
  const holds = pieceTest(name, piece)
  return element => onText(element, text => truthOf(holds(folded ? foldValue(text) : text)))
}

function pieceTest(name: PieceName, piece: string): TextTest {
  if (name === 'startsWith') return text => text.startsWith(piece)
  return name === 'endsWith' ? text => text.endsWith(piece) : includes(piece)
}

export function buildLike(operand: Operand): ElementTest {
  checkPattern(operand.value)
  const folded = ignoresCase(operand)
  const glob = compileGlob(folded ? fold(operand.value) : operand.value)
  return element =>
    onText(element, text => {
      if (text.length * operand.value.length > globBudget) return Unreadable
      return truthOf(glob(folded ? foldValue(text) : text))
    })
}

export function buildMatches(operand: Operand): ElementTest {
  checkPattern(operand.value)
  const regex = compileRegex(operand.value, ignoresCase(operand))
  if (typeof regex === 'string') throw new ConditionError(regex)
  return element =>
    onText(element, text => {
      if (text.length > scanLimit) return Unreadable
      charge(stepsOfSearch)
      const { found } = resume(regex, text, () => regex.begin(text))
      return found === undefined ? Unreadable : truthOf(found)
    })
}

function checkPattern(pattern: string): void {
  if (pattern === '') throw new ConditionError('the pattern must not be empty')
  if (pattern.length > limits.regex) {
    throw new ConditionError(`a pattern must have at most ${limits.regex} characters`, 'E_LIMIT')
  }
}

export function buildPathMatches(operand: Operand): ElementTest {
  if (operand.field.text !== 'input.path') throw new ConditionError('pathMatches must be used on input.path')
  const tests = readWords(operand.value).map(word => {
    const test = compilePathPattern(operand.ignoreCase ? fold(word) : word)
    if (typeof test === 'string') throw new ConditionError(test)
    return test
  })
  return element => {
    const path = operand.ignoreCase ? fold(String(element)) : String(element)
    return truthOf(tests.some(test => test(path)))
  }
}

export function buildHostMatches(operand: Operand): ElementTest {
  const patterns = readWords(operand.value).map(word => {
    const pattern = parseHostPattern(word.toLowerCase())
    if (pattern === undefined)
      throw new ConditionError(`${JSON.stringify(word)} must be a host such as a.example or *.a.example`)
    return pattern
  })
  return element => truthOf(typeof element === 'string' && matchesAnyHost(patterns, element.toLowerCase()))
}

export function buildIpIn(operand: Operand): ElementTest {
  const ranges = new AddressRanges()
  for (const word of readWords(operand.value)) {
    if (!ranges.add(word)) throw new ConditionError(`${JSON.stringify(word)} must be an address or CIDR range`)
  }
  return element => truthOf(typeof element === 'string' && ranges.has(element))
}

/** The search for the detectors that a condition names. */
export function searchOf({ value }: Pick<Operand, 'value'>): DetectorSearch {
  const search = compileDetectors(readWords(value))
  if (typeof search === 'string') throw new ConditionError(search)
  return search
}

export function buildDetects(operand: Operand): ElementTest {
  const search = searchOf(operand)
  return element => onText(element, text => truthOf(findIn(search, text) !== undefined))
}
