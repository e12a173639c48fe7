/**
 * The four values of a condition. A request is first decided without its body, so besides true and false there is
 * "not known yet" and, for values that can never be evaluated, "unreadable".
 */
export type Truth = 0 | 1 | 2 | 3

export const False = 0
export const True = 1
/** The body has not arrived. */
export const Unknown = 2
/** The value is there and cannot be evaluated. */
export const Unreadable = 3

/** False wins, then unknown (a later false may still remove the unreadable), then unreadable. */
export function and(left: Truth, right: Truth): Truth {
  if (left === False || right === False) return False
  if (left === Unknown || right === Unknown) return Unknown
  return left === Unreadable ? left : right
}

/** True wins, then unknown, then unreadable. */
export function or(left: Truth, right: Truth): Truth {
  if (left === True || right === True) return True
  if (left === Unknown || right === Unknown) return Unknown
  return left === Unreadable ? left : right
}

export function not(value: Truth): Truth {
  if (value === False) return True
  return value === True ? False : value
}

/** States of a field beside a JSON value. */
export const missing = Symbol('missing')
export const unknown = Symbol('unknown')
export const unreadable = Symbol('unreadable')
