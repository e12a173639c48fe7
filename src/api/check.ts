import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { didYouMean } from '../base/nearest.ts'
import type { FieldError } from '../base/refusals.ts'

/**
 * Checks a value against a schema of the document.
 *
 * @returns every mistake; empty when there is none
 */
export type Check = (value: unknown) => readonly FieldError[]

/** Mistakes with a suggestion: a hostile body has thousands, and each takes time. */
const maxSuggestions = 10

/** By document, and then by pointer: gateways of one process share what was compiled. */
const known = new WeakMap<object, (pointer: string) => Check>()

/**
 * Checks by schemas of a document, such as openapi.json, named by their JSON pointer. Each is compiled when it is first
 * used: most gateways use few of them.
 */
export function createChecks(document: object): (pointer: string) => Check {
  const checkOf = known.get(document) ?? makeChecks(document)
  known.set(document, checkOf)
  return checkOf
}

function makeChecks(document: object): (pointer: string) => Check {
  const ajv = new Ajv2020({
    allErrors: true,
    // Errors then name the schema, which has the names to suggest.
    verbose: true,
    // The document is an OpenAPI description around its schemas, not a schema itself; redocly checks it.
    strict: false,
    validateSchema: false,
    validateFormats: false,
  })
  ajv.addSchema(document, 'openapi.json')
  const compiled = new Map<string, ValidateFunction>()
  return pointer => value => {
    const check = compiled.get(pointer) ?? ajv.compile({ $ref: `openapi.json#${pointer}` })
    compiled.set(pointer, check)
    return check(value) ? [] : (check.errors ?? []).map((error, index) => describe(error, index < maxSuggestions))
  }
}

function describe(error: ErrorObject, suggest: boolean): FieldError {
  const at = jsonPath(error.instancePath)
  switch (error.keyword) {
    case 'required':
      return { field: join(at, error.params['missingProperty']), message: 'is required' }
    case 'additionalProperties': {
      const name: string = error.params['additionalProperty']
      const suggestion = suggest ? didYouMean(name, Object.keys(error.parentSchema?.['properties'] ?? {})) : ''
      return { field: join(at, name), message: `must not be given: unknown field${suggestion}` }
    }
    case 'enum':
      return { field: at, message: `must be one of ${error.params['allowedValues'].join(', ')}` }
    default:
      return { field: at, message: error.message ?? 'is not valid' }
  }
}

/** `/rules/0/effect` (RFC 6901) as `rules[0].effect`; the body itself is the empty path. */
function jsonPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : join(path, part)), '')
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
