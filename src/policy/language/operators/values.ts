import type { Field } from '../fields/fields.ts'
import { limits } from '../model.ts'
import { ConditionError } from '../problems.ts'

/** The operand of a condition: the text and how to read it. */
export interface Operand {
  readonly field: Field
  readonly value: string
  readonly valueType: 'number' | 'boolean' | undefined
  readonly ignoreCase: boolean
}

/** One value of `eq` or of a list; `type` is set when the author wrote that JSON type. */
export interface Scalar {
  readonly text: string
  readonly type: 'number' | 'boolean' | undefined
}

/** Entries of a list value: JSON text, or text with commas. @throws ConditionError */
export function readList(value: string): readonly Scalar[] {
  const items = value.trimStart().startsWith('[') ? readJsonList(value) : readCommaList(value)
  if (items === undefined) throw new ConditionError('a list must be JSON text or words separated by commas')
  if (items.length === 0) throw new ConditionError('the list must not be empty')
  if (items.length > limits.list) throw new ConditionError(`a list must have at most ${limits.list} entries`, 'E_LIMIT')
  return items
}

function readCommaList(value: string): readonly Scalar[] | undefined {
  const words = value.split(',').map(word => word.trim())
  return words.includes('') ? undefined : words.map(text => ({ text, type: undefined }))
}

function readJsonList(value: string): readonly Scalar[] | undefined {
  try {
    const items: readonly (Scalar | undefined)[] = JSON.parse(value).map(scalarOf)
    return items.every(item => item !== undefined) ? items : undefined
  } catch {
    return undefined
  }
}

function scalarOf(value: unknown): Scalar | undefined {
  if (typeof value === 'string' || value === null) return { text: String(value), type: undefined }
  if (typeof value === 'number') return { text: String(value), type: 'number' }
  return typeof value === 'boolean' ? { text: String(value), type: 'boolean' } : undefined
}

/** The texts of a list value. @throws ConditionError */
export function readWords(value: string): readonly string[] {
  return readList(value).map(item => item.text)
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
