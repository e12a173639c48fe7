/** Why an upstream could not be reached, or broke off. */
export const failureKinds = [
  'refused',
  'reset',
  'unreachable',
  'tls',
  'malformed',
  'connect_timeout',
  'headers_timeout',
  'body_timeout',
  'busy',
  'descriptors',
  'memory',
  'ports',
  'name_not_found',
  'name_timeout',
  'name_busy',
  'other',
] as const

export type FailureKind = (typeof failureKinds)[number]
