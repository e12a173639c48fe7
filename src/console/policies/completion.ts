/** Names of the policy language that complete while a policy is typed. */
import { vocabulary } from '../types.ts'
import { effects } from './effects.ts'
import { spotAt } from './places.ts'

const { members, fields, operators } = vocabulary

/** What a member may be. */
const values: Readonly<Record<string, readonly string[]>> = {
  effect: effects,
  default: effects,
  field: fields,
  operator: operators,
  mode: ['enforce', 'shadow'],
  onUnreadable: ['failSafe', 'match', 'noMatch'],
  whenUndecided: ['accepted', 'refused'],
  quantifier: ['any', 'all'],
}

export interface Completion {
  readonly words: readonly string[]
  /** What a word replaces. */
  readonly from: number
  readonly to: number
}

/** Words that are offered at once. */
const most = 12

/** @param isAsked whether the person asked for names; else they are offered when a word was begun */
export function completionsAt(text: string, at: number, isAsked: boolean): Completion {
  const { kind, member, within, word, from } = spotAt(text, at)
  const known = kind === 'value' ? (Object.hasOwn(values, member) ? (values[member] ?? []) : []) : membersOf(within)
  const wanted = word.toLowerCase()
  const fitting = known.filter(name => name.toLowerCase().includes(wanted) && name !== word)
  const first = fitting.filter(name => name.toLowerCase().startsWith(wanted))
  const words = [...new Set([...first, ...fitting])].slice(0, most)
  const isQuoted = text[from - 1] === '"'
  const isOffered = isAsked || (isQuoted && word !== '')
  return { words: isOffered ? words.map(name => (isQuoted ? name : `"${name}"`)) : [], from, to: at }
}

function membersOf(within: string): readonly string[] {
  if (within === '') return members.policy
  if (within === 'rules') return members.rule
  return ['conditions', 'all', 'any', 'not'].includes(within) ? members.condition : []
}
