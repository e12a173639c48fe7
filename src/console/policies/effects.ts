import type { Effect } from '../types.ts'

/** From the mildest to the strictest: at equal priority the stricter rule is asked first. */
export const effects: readonly Effect[] = ['Allow', 'Hitl', 'Deny']

export const isMilder = (one: Effect, other: Effect): boolean => effects.indexOf(one) < effects.indexOf(other)
