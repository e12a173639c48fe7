import { escapeDeceptive } from '../../base/deceptive.ts'
import type { Field } from '../language/fields/fields.ts'
import type { Zone } from '../language/fields/zone.ts'
import type { Title } from '../language/title.ts'
import type { Facts } from '../request/facts.ts'
import { unreadable } from '../values/truth.ts'
import { showActual } from './redact.ts'

/** The title of a request: values as records show them, so that secrets are marked and nothing hides or reorders text. */
export function titleText(title: Title, facts: Facts, zone: Zone): string {
  const text = title.map(piece => (typeof piece === 'string' ? escapeDeceptive(piece) : valueText(piece, facts, zone)))
  return cutText(text.join(''))
}

/** Longest text in a row of a list, characters. */
const longest = 120

export function cutText(text: string): string {
  const characters = [...text]
  return characters.length > longest ? `${characters.slice(0, longest - 1).join('')}…` : text
}

function valueText(field: Field, facts: Facts, zone: Zone): string {
  const value = field.read(facts, zone)
  if (value === unreadable) return '?'
  return shownText(field, value)
}

/** A readable value as records show it, in one line. */
export function shownText(field: Field, value: unknown): string {
  return listed(showActual(field, value))
}

function listed(shown: unknown): string {
  return Array.isArray(shown) ? shown.map(listed).join(', ') : String(shown)
}
