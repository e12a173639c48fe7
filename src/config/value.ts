import { formatSetting, parseTimespan } from './duration.ts'
import type { Setting } from './setting.ts'

/** The checked value of a setting, or what is wrong with it. The problem never repeats what was given. */
export type ParsedValue = { readonly value: unknown } | { readonly problem: string }

/** Checks a value that YAML has already given a type. */
export function readTyped(setting: Setting<unknown>, raw: unknown): ParsedValue {
  if (setting.auto !== undefined && raw === 'auto') return { value: setting.auto }
  switch (setting.kind) {
    case 'integer':
    case 'number':
      return typeof raw === 'number' ? readNumber(setting, raw) : { problem: numberExpected(setting) }
    case 'boolean':
      return typeof raw === 'boolean' ? { value: raw } : { problem: 'must be true or false' }
    case 'text':
      return typeof raw === 'string' ? readText(setting, raw) : { problem: 'must be text; put it in quotes' }
    case 'choice':
      return readChoice(setting, raw)
    case 'timespan':
      return readTimespan(setting, raw)
    case 'list':
      return Array.isArray(raw) ? readList(setting, raw) : { problem: 'must be a list' }
    case 'objects':
      return Array.isArray(raw) ? { value: raw } : { problem: 'must be a list' }
  }
}

/** Checks the text of an environment variable. Lists are separated by commas. */
export function readFromText(setting: Setting<unknown>, raw: string): ParsedValue {
  if (setting.auto !== undefined && raw === 'auto') return { value: setting.auto }
  switch (setting.kind) {
    case 'integer':
    case 'number':
      return /^[+-]?\d+(\.\d+)?$/.test(raw) ? readNumber(setting, Number(raw)) : { problem: numberExpected(setting) }
    case 'boolean':
      return /^(true|false)$/i.test(raw)
        ? { value: raw.toLowerCase() === 'true' }
        : { problem: 'must be true or false' }
    case 'list': {
      const items = raw.split(',').map(item => item.trim())
      return readList(
        setting,
        items.filter(item => item !== ''),
      )
    }
    case 'objects':
      return { problem: 'must be set in the configuration file' }
    default:
      return readTyped(setting, raw)
  }
}

function numberExpected({ kind, auto }: Setting<unknown>): string {
  if (kind !== 'integer') return 'must be a number'
  return auto === undefined ? 'must be a whole number' : 'must be a whole number, or auto'
}

function readNumber(setting: Setting<unknown>, value: number): ParsedValue {
  const fits = setting.kind === 'integer' ? Number.isSafeInteger(value) : Number.isFinite(value)
  return fits ? inRange(setting, value, String) : { problem: numberExpected(setting) }
}

function readTimespan(setting: Setting<unknown>, raw: unknown): ParsedValue {
  const value = typeof raw === 'string' ? parseTimespan(raw) : undefined
  if (value === undefined) return { problem: 'must be a time span such as 00:15:00 or 1.00:00:00' }
  return inRange(setting, value, formatSetting)
}

function inRange(setting: Setting<unknown>, value: number, show: (limit: number) => string): ParsedValue {
  const { min, max } = setting
  if (min !== undefined && value < min) return { problem: `must be >= ${show(min)}` }
  if (max !== undefined && value > max) return { problem: `must be <= ${show(max)}` }
  return { value }
}

function readText(setting: Setting<unknown>, value: string): ParsedValue {
  if (value === '') return { problem: 'must not be empty' }
  if (/\p{Cc}/u.test(value)) return { problem: 'must not contain control characters' }
  if (!value.isWellFormed()) return { problem: 'must be well-formed Unicode' }
  const problem = setting.format?.(value)
  return problem === undefined ? { value } : { problem }
}

function readChoice(setting: Setting<unknown>, raw: unknown): ParsedValue {
  const { choices = [] } = setting
  const value = choices.find(name => name.toLowerCase() === String(raw).toLowerCase())
  return value === undefined ? { problem: `must be one of ${choices.join(', ')}` } : { value }
}

/** Problems name the item by its place in the list, because the item itself may be a secret. */
function readList(setting: Setting<unknown>, items: readonly unknown[]): ParsedValue {
  for (const [index, item] of items.entries()) {
    const reading = typeof item === 'string' ? readText(setting, item) : { problem: 'must be text' }
    if ('problem' in reading) return { problem: `item ${index + 1} ${reading.problem}` }
  }
  return { value: items }
}
