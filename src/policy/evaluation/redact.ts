import { escapeDeceptive } from '../../base/deceptive.ts'
import { redactText } from '../../base/redact.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { personalDataSearch, secretSearch } from '../detectors/detectors.ts'
import type { Field } from '../language/fields/fields.ts'
import { findIn } from '../turns/evaluation.ts'
import { LongNumber } from '../values/numbers.ts'
import { isRecord, Several, typeName } from '../values/path.ts'
import { missing, unknown, unreadable } from '../values/truth.ts'

/** Longest actual value that is shown, characters. */
const shownLength = 64
const shownElements = 5

/** Longest part of a text that is searched for secrets before it is cut, characters. */
const searchedLength = 4_096

/** No detector finds anything that holds one of these characters and does not fire by its beginning alone. */
const breaks = /[\s"'<>]/

/** A field's value as records may show it: secrets marked, long text cut, objects by their type. */
export function showActual(field: Field, value: unknown): unknown {
  const state = stateText(value)
  if (state !== undefined) return state
  if (isSecretName(lastName(field.text))) return '[redacted]'
  return show(value)
}

/** What is shown of a value that is not there. */
function stateText(value: unknown): string | undefined {
  if (value === missing) return '(missing)'
  if (value === unknown) return '(not known yet)'
  return value === unreadable ? '(unreadable)' : undefined
}

/** The last name in the path of a field: indexes, `@size`, `@type` and `@keys` are not names. */
function lastName(path: string): string {
  const [, quoted, plain] = lastStep.exec(path) ?? []
  return quoted ?? plain ?? ''
}

const lastStep = /(?:\["((?:[^"\\]|\\.)*)"\]|\.([^.[\]@]+))(?:\[(?:\*|-?\d+)\]|\.@size|\.@type|\.@keys)*$/

function show(value: unknown): unknown {
  if (typeof value === 'string') return showText(value)
  if (value instanceof LongNumber) return showText(value.text)
  if (typeof value === 'number') return showNumber(value)
  if (value instanceof Several) return showList(value.items)
  if (Array.isArray(value)) return showList(value)
  return isRecord(value) ? `(${typeName(value)})` : value
}

function showList(list: readonly unknown[]): unknown {
  const shown = list.slice(0, shownElements).map(item => stateText(item) ?? show(item))
  return list.length > shownElements ? [...shown, `${list.length - shownElements} more`] : shown
}

/** JSON may hold the number of a card as a number. */
function showNumber(value: number): unknown {
  const text = String(value)
  const shown = showText(text)
  return shown === text ? value : shown
}

function showText(text: string): string {
  const searched = text.slice(0, searchedLength)
  // A secret that begins in the shown part and ends behind the searched part would not be found.
  if (text.length > searchedLength && !breaks.test(searched.slice(shownLength))) return '[redacted: long-word]'
  const found = findIn(secretSearch, searched) ?? findIn(personalDataSearch, searched)
  if (found !== undefined) return `[redacted: ${found}]`
  const shown = escapeDeceptive(redactText(searched))
  return copyOf(shown.length > shownLength ? `${shown.slice(0, shownLength - 1)}…` : shown)
}

/** V8 copies a piece of a text that is shorter than this, characters; a longer piece refers to the whole text. */
const shortestPiece = 13

/** A record must not keep the body alive that it quotes. */
function copyOf(text: string): string {
  return text.length < shortestPiece ? text : JSON.parse(JSON.stringify(text))
}
