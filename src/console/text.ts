/** Words for numbers and times. */

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' })
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

export const timeText = (iso: string): string => clock.format(new Date(iso))

/** `4 min 10 s`, `2 h 5 min`. */
export function spanText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`
}

export function agoText(iso: string, now: number): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1_000)
  if (Math.abs(seconds) < 60) return relative.format(Math.min(0, seconds), 'second')
  if (Math.abs(seconds) < 3_600) return relative.format(Math.round(seconds / 60), 'minute')
  if (Math.abs(seconds) < 86_400) return relative.format(Math.round(seconds / 3_600), 'hour')
  return relative.format(Math.round(seconds / 86_400), 'day')
}

export function sizeText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`
  if (bytes < 1_048_576) return `${(bytes / 1_024).toFixed(1)} KiB`
  return `${(bytes / 1_048_576).toFixed(1)} MiB`
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/** The characters that a reader does not see, or that change the order of others. */
const unseen =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each stands for itself
  /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|\\u\{[0-9a-f]{1,6}\}/gu

/** Parts of a text: what is plain, and what must be made visible. `\u{202e}` is how the gateway writes such a character. */
export function partsOf(text: string): readonly { readonly text: string; readonly isEscape: boolean }[] {
  const parts: { text: string; isEscape: boolean }[] = []
  let from = 0
  for (const found of text.matchAll(unseen)) {
    if (found.index > from) parts.push({ text: text.slice(from, found.index), isEscape: false })
    parts.push({ text: escapeOf(found[0]), isEscape: true })
    from = found.index + found[0].length
  }
  if (from < text.length) parts.push({ text: text.slice(from), isEscape: false })
  return parts
}

function escapeOf(found: string): string {
  return found.startsWith('\\') ? found.slice(1) : `u{${(found.codePointAt(0) ?? 0).toString(16)}}`
}
