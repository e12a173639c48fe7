/** What a field was in all requests of a shape: one of a few texts, or a number. */
export type BodyValue = { readonly texts: readonly string[] } | { readonly min: number; readonly max: number }

/** By field, such as `input.body.currency`. A field that is not among them had other values too, or too many. */
export type BodyValues = Readonly<Record<string, BodyValue>>

/** Texts of one field that are kept; with one more the field is dropped. */
const maxTexts = 8

/** What holds for the requests of both. @param one undefined: of no request */
export function valuesOfBoth(one: BodyValues | undefined, other: BodyValues): BodyValues {
  if (one === undefined) return other
  const both = Object.entries(one).flatMap(([field, value]) => {
    const found = Object.hasOwn(other, field) ? valueOfBoth(value, other[field]!) : undefined
    return found === undefined ? [] : [[field, found] as const]
  })
  return Object.fromEntries(both)
}

function valueOfBoth(one: BodyValue, other: BodyValue): BodyValue | undefined {
  if ('min' in one && 'min' in other) return { min: Math.min(one.min, other.min), max: Math.max(one.max, other.max) }
  if ('min' in one || 'min' in other) return undefined
  const texts = [...new Set([...one.texts, ...other.texts])].sort()
  return texts.length > maxTexts ? undefined : { texts }
}

/** Combinations that are told apart. */
const maxCombinations = 16

/** Each combination of the texts of fields. Those of which there would be too many are not among them, nor are numbers. */
export function combinationsOf(values: BodyValues): readonly BodyValues[] {
  let all: readonly BodyValues[] = [{}]
  for (const [field, value] of Object.entries(values)) {
    if ('min' in value || all.length * value.texts.length > maxCombinations) continue
    all = all.flatMap(one => value.texts.map(text => ({ ...one, [field]: { texts: [text] } })))
  }
  return all
}

/** Requests, and days on which they came, after which texts that a field had are all that a rule allows. */
const fewestCount = 20
const fewestDays = 2
/** Fields of one rule: it has at most 32 conditions, up to 17 of them on other things. */
const maxOfRule = 12

/** The fields that only ever had few texts, with them. */
export function fewTexts(
  values: BodyValues,
  { count, days }: { readonly count: number; readonly days: number },
): readonly (readonly [field: string, texts: readonly string[]])[] {
  if (count < fewestCount || days < fewestDays) return []
  const all = Object.entries(values).flatMap(([field, value]) =>
    'texts' in value ? [[field, value.texts] as const] : [],
  )
  return all.slice(0, maxOfRule)
}
