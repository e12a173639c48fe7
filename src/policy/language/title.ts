/** Titles of Hitl rules: text for reviewers, with values of the request in braces: `Refund {input.body.amount}`. */
import type { Scope } from './condition.ts'
import { type Field, parseField } from './fields/fields.ts'
import { ConditionError } from './problems.ts'

/** Longest title in a rule, UTF-16 units. */
const longest = 512
const maxFields = 8

/** A title as its pieces: text as it is, and fields whose values take their places. */
export type Title = readonly (string | Field)[]

/** `{{` and `}}` are braces; a brace in a quoted key ends nothing. */
const piece = /\{\{|\}\}|\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}|[^{}]+|[{}]/g

/**
 * The pieces of a title; undefined for a rule without one.
 *
 * @throws ConditionError saying what is wrong with it
 */
export function compileTitle(text: string, { hiddenHeaders }: Scope): Title | undefined {
  if (text === '') return undefined
  if (text.length > longest) throw new ConditionError(`a title must have at most ${longest} characters`, 'E_LIMIT')
  const pieces = Array.from(text.matchAll(piece), ([whole, path]) => {
    return path === undefined ? plainPiece(whole) : fieldPiece(path, hiddenHeaders)
  })
  const fields = pieces.filter(one => typeof one !== 'string')
  if (fields.length > maxFields) throw new ConditionError(`a title must have at most ${maxFields} fields`, 'E_LIMIT')
  return pieces
}

function plainPiece(text: string): string {
  if (text === '{{' || text === '}}') return text.charAt(0)
  if (text === '{' || text === '}') {
    throw new ConditionError(`a title must have {field} or, for the character itself, ${text}${text}`)
  }
  return text
}

function fieldPiece(path: string, hiddenHeaders: ReadonlySet<string>): Field {
  return fieldToShow(path, { hiddenHeaders }, 'a title')
}

/**
 * A field whose value people see.
 *
 * @param place where they see it, for the mistake
 * @throws ConditionError
 */
export function fieldToShow(path: string, { hiddenHeaders }: Pick<Scope, 'hiddenHeaders'>, place: string): Field {
  const field = parseField(path)
  if (typeof field === 'string') throw new ConditionError(field, 'E_FIELD')
  if (field.kind.phase === 'risk') throw new ConditionError(`${path} must not be in ${place}: reviewers see the risk`)
  if (field.header !== undefined && hiddenHeaders.has(field.header)) {
    throw new ConditionError(`${path} holds a credential: it must not be in ${place}`)
  }
  return field
}
