import { detectPii, detectSecret } from './detectors.ts'
import type { Field } from './fields.ts'
import { LongNumber } from './numbers.ts'
import { isRecord, Several, typeName } from './path.ts'
import { missing, unknown, unreadable } from './truth.ts'

/** Longest actual value that is shown, characters. */
const shownLength = 64
const shownElements = 5

/** Ends of names whose values are secrets; the same words as for requests held for review. */
const secretNames =
  /(?:authorization|cookie|api-?_?key|auth-?_?token|[-_.]?token|secret|[-_]key|passw(?:or)?d|credentials?|private_?key)$/i

/** A field's value as records may show it: secrets marked, long text cut, objects by their type. */
export function showActual(field: Field, value: unknown): unknown {
  if (value === missing) return '(missing)'
  if (value === unknown) return '(not known yet)'
  if (value === unreadable) return '(unreadable)'
  if (isSecretName(field.text)) return '[redacted]'
  return show(value)
}

function isSecretName(path: string): boolean {
  const name = path.replace(/(?:\[(?:\*|-?\d+)\]|"?\]|\.@size|\.@type)+$/, '')
  return secretNames.test(name)
}

function show(value: unknown): unknown {
  if (typeof value === 'string') return showText(value)
  if (value instanceof LongNumber) return value.text
  if (value instanceof Several) return showList(value.items)
  if (Array.isArray(value)) return showList(value)
  return isRecord(value) ? `(${typeName(value)})` : value
}

function showList(list: readonly unknown[]): unknown {
  const shown = list.slice(0, shownElements).map(item => (item === missing ? '(missing)' : show(item)))
  return list.length > shownElements ? [...shown, `${list.length - shownElements} more`] : shown
}

function showText(text: string): string {
  const found = detectSecret(text) ?? detectPii(text)
  if (found !== undefined) return `[redacted: ${found}]`
  return text.length > shownLength ? `${text.slice(0, shownLength - 1)}…` : text
}
