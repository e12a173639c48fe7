import type { Field } from '../fields/fields.ts'
import { limits } from '../model.ts'
import type { ProblemCode } from '../problems.ts'

/** What a condition compares with: the wire text and how to read it. */
export interface Operand {
  readonly field: Field
  readonly value: string
  readonly valueType: 'number' | 'boolean' | undefined
  readonly ignoreCase: boolean
}

/** Why a value does not suit its operator. */
export class WrongValue {
  readonly message: string
  readonly code: ProblemCode
  constructor(message: string, code: ProblemCode = 'E_VALUE') {
    this.message = message
    this.code = code
  }
}

/** One value of `eq` or of a list; `type` is set when the author wrote that JSON type. */
export interface Scalar {
  readonly text: string
  readonly type: 'number' | 'boolean' | undefined
}

/** Entries of a list value: JSON text, or text with commas. */
export function readList(value: string): readonly Scalar[] | WrongValue {
  const items = value.trimStart().startsWith('[') ? readJsonList(value) : readCommaList(value)
  if (items === undefined) return new WrongValue('a list must be JSON text or words separated by commas')
  if (items.length === 0) return new WrongValue('the list must not be empty')
  if (items.length > limits.list) return new WrongValue(`a list must have at most ${limits.list} entries`, 'E_LIMIT')
  return items
}

function readCommaList(value: string): readonly Scalar[] | undefined {
  const words = value.split(',').map(word => word.trim())
  return words.includes('') ? undefined : words.map(text => ({ text, type: undefined }))
}

function readJsonList(value: string): readonly Scalar[] | undefined {
  let list: unknown
  try {
    list = JSON.parse(value)
  } catch {
    return undefined
  }
  if (!Array.isArray(list)) return undefined
  const items = list.map(scalarOf)
  return items.some(item => item === undefined) ? undefined : (items as Scalar[])
}

function scalarOf(value: unknown): Scalar | undefined {
  if (typeof value === 'string') return { text: value, type: undefined }
  if (value === null) return { text: 'null', type: undefined }
  if (typeof value !== 'number' && typeof value !== 'boolean') return undefined
  return { text: String(value), type: typeof value as 'number' | 'boolean' }
}

/** The texts of a list value. */
export function readWords(value: string): readonly string[] | WrongValue {
  const items = readList(value)
  return items instanceof WrongValue ? items : items.map(item => item.text)
}

/** `"true"` or `"false"`, any letter case. */
export function readFlag(value: string): boolean | WrongValue {
  const word = value.toLowerCase()
  if (word !== 'true' && word !== 'false') return new WrongValue('the value must be "true" or "false"')
  return word === 'true'
}

/**
 * Lower case that keeps lengths and does not depend on the neighbours of a letter, so that a part of a text stays a
 * part of it.
 */
export function fold(text: string): string {
  return text.replaceAll('İ', 'i').toLowerCase().replaceAll('ς', 'σ')
}

/** Whether pieces and patterns on this field are compared without letter case: its values have but one case. */
export function ignoresCase(operand: Operand): boolean {
  return operand.ignoreCase || operand.field.kind.normalise !== undefined
}
