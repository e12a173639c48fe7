import type { Condition } from '../language/model.ts'
import type { Operator } from '../language/operators/operators.ts'
import { readWords } from '../language/operators/values.ts'

/** A value that an Allow rule also matches, and probably should not. */
interface Sibling {
  readonly value: string
  /** What to write instead. */
  readonly instead: string
}

/**
 * What else a condition of an Allow rule matches: `/v1/refunds-all` with `/v1/refund*`, `notexample.com` with `endsWith
 * example.com`. `holds` tries a value, so that nothing is claimed that is not so.
 */
export function openEnd(
  condition: Condition,
  operator: Operator,
  holds: (value: string) => boolean,
): string | undefined {
  const { name } = operator.form
  const words = name === 'pathMatches' ? readWords(condition.value) : [condition.value]
  for (const word of words) {
    const sibling = siblingsOf(condition.field, name, word)
    if (sibling !== undefined && holds(sibling.value)) return `also matches ${sibling.value}: use ${sibling.instead}`
  }
  return undefined
}

function siblingsOf(field: string, operator: string, word: string): Sibling | undefined {
  if (field === 'input.path' || field === 'input.rawPath') return ofPath(operator, word)
  if (field === 'input.host') return ofHost(operator, word)
  return field === 'input.origin' || field === 'input.url' ? ofUrl(operator, word) : undefined
}

/** Behind a letter or a digit the word may go on. */
const openWord = /[A-Za-z0-9]$/
const wholeSegments = (prefix: string) => `pathMatches with ${JSON.stringify(`${prefix}/**`)}`

function ofPath(operator: string, word: string): Sibling | undefined {
  if (operator === 'startsWith')
    return openWord.test(word) ? { value: `${word}-x`, instead: wholeSegments(word) } : undefined
  if (operator === 'like') return ofLike(word)
  if (operator === 'matches') return ofRegex(word)
  if (operator !== 'pathMatches') return undefined
  const [, prefix] = /^((?:\/[^/*{\\]*)*\/[^/*{\\]*[A-Za-z0-9])\*(?:\/|$)/.exec(word) ?? []
  if (prefix === undefined) return undefined
  const value = word
    .replace('*', '-x')
    .replaceAll('**', 'x')
    .replace(/\*|\{[^{}]*\}/g, 'x')
  return { value, instead: wholeSegments(prefix) }
}

function ofLike(word: string): Sibling | undefined {
  const [, prefix = ''] = /^([^*?\\]+)\*$/.exec(word) ?? []
  return openWord.test(prefix) ? { value: `${prefix}-x`, instead: wholeSegments(prefix) } : undefined
}

/** A pattern of plain text that is not anchored at its end. */
function ofRegex(word: string): Sibling | undefined {
  const [, text = ''] = /^\^((?:[\w/-]|\\[.\-/])+)$/.exec(word) ?? []
  return openWord.test(text) ? { value: `${text.replaceAll('\\', '')}-x`, instead: `${word}(/|$)` } : undefined
}

const hostPattern = (host: string) => `hostMatches with ${JSON.stringify(host)}`

function ofHost(operator: string, word: string): Sibling | undefined {
  const bare = word.replace(/^\*|\*$/g, '')
  if (operator === 'endsWith' || (operator === 'like' && word.startsWith('*'))) {
    return bare.startsWith('.') ? undefined : { value: `not${bare}`, instead: hostPattern(`.${bare}`) }
  }
  const goesOn = operator === 'startsWith' || operator === 'contains' || (operator === 'like' && word.endsWith('*'))
  if (goesOn) return { value: `${bare}.evil.example`, instead: 'eq, in or hostMatches' }
  const [, text = ''] = operator === 'matches' ? (/^\^?((?:[\w-]|\\\.)+)$/.exec(word) ?? []) : []
  return text === ''
    ? undefined
    : { value: `${text.replaceAll('\\', '')}.evil.example`, instead: 'eq, in or hostMatches' }
}

/** `https://api.example.com`, and no slash behind it. */
const originAlone = /^https?:\/\/[^/?#*]+$/

function ofUrl(operator: string, word: string): Sibling | undefined {
  const bare = word.replace(/\*$/, '')
  if ((operator === 'startsWith' || (operator === 'like' && bare !== word)) && originAlone.test(bare)) {
    return { value: `${bare}.evil.example/`, instead: 'input.origin eq' }
  }
  if (operator !== 'contains') return undefined
  return { value: `https://evil.example/?${word}`, instead: 'input.origin eq, and input.path' }
}
