import { fieldName } from './names.ts'

const fields: ReadonlySet<string> = new Set(['x-http-method', 'x-http-method-override', 'x-method-override'])
const parameter = /^(?:\$httpMethod|_method)$/i

/**
 * Whether a request asks its server to take another method than its own: Google's servers and many frameworks do so.
 *
 * @param query without the question mark
 * @param rawHeaders flat: name, value
 */
export const overridesMethod = (query: string, rawHeaders: readonly string[]): boolean =>
  rawHeaders.some((name, at) => at % 2 === 0 && fields.has(fieldName(name).folded)) ||
  // Some servers end a parameter at a semicolon.
  [...new URLSearchParams(query.replaceAll(';', '&')).keys()].some(name => parameter.test(name))
