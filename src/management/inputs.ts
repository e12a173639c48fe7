import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Check } from '../api/check.ts'
import type { ApiOperation, BodyRule, QueryParameter } from '../api/openapi.ts'
import { parseStrictJson } from '../base/json.ts'
import { didYouMean } from '../base/nearest.ts'
import { isObject } from '../base/records.ts'
import { type FieldError, isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { readBody } from '../http/body.ts'
import type { ManagementCall } from './call.ts'

const maxBodyBytes = 1_048_576
const maxFormBytes = 65_536
/** Unknown query parameters that a refusal names, and characters of each: more would help nobody. */
const maxUnknown = 10
const maxUnknownLength = 100

/** Reads what a call brings along, as its operation in openapi.json says. */
export type Inputs = ReturnType<typeof createInputs>

export function createInputs(operation: ApiOperation, checks: (pointer: string) => Check) {
  const parameters = operation.query.map(parameter => ({ ...parameter, check: checks(parameter.schema) }))
  const schema = operation.body?.schema
  const checkBody = schema === undefined ? checkObject : checks(schema)
  return {
    /** @param search the query without its question mark. Parameters that are not declared are refused, unless the operation takes any. */
    readQuery(search: string): ManagementCall['query'] | Refusal {
      const given = new URLSearchParams(search)
      const values: Record<string, string | number> = {}
      const errors = operation.anyQuery ? [] : unknownParameters(given, parameters)
      for (const parameter of parameters) {
        const value = readParameter(parameter, given.getAll(parameter.name))
        if (typeof value === 'object') errors.push(value)
        else if (value !== undefined) {
          errors.push(...parameter.check(value).map(error => ({ ...error, field: parameter.name })))
          values[parameter.name] = value
        }
      }
      return errors.length === 0 ? values : refuse('invalid_parameter', undefined, { errors })
    },
    async readBody(req: IncomingMessage, res: ServerResponse): Promise<{ readonly value: unknown } | Refusal> {
      if (operation.body === undefined) return { value: undefined }
      const { isForm } = operation.body
      const bytes = await receive(req, res, isForm ? maxFormBytes : maxBodyBytes)
      if (isForm && !isRefusal(bytes)) return { value: bytes }
      return isRefusal(bytes) ? bytes : parseBody(req, bytes, operation.body, checkBody)
    },
  }
}

/** A misspelt filter must not answer with everything. */
function unknownParameters(given: URLSearchParams, declared: readonly QueryParameter[]): FieldError[] {
  const names = declared.map(({ name }) => name)
  const unknown = [...new Set(given.keys())].filter(name => !names.includes(name))
  return unknown.slice(0, maxUnknown).map(name => ({
    field: name.slice(0, maxUnknownLength),
    message: `must not be given: unknown parameter${didYouMean(name, names)}`,
  }))
}

function readParameter(parameter: QueryParameter, given: readonly string[]): string | number | FieldError | undefined {
  if (given.length > 1) return { field: parameter.name, message: 'must be given once' }
  const [value] = given
  if (value === undefined) return parameter.default
  return parameter.type === 'integer' && /^-?\d{1,15}$/.test(value) ? Number(value) : value
}

function receive(req: IncomingMessage, res: ServerResponse, limit: number): Promise<Buffer | Refusal> {
  if (req.headers['content-encoding'] !== undefined)
    return Promise.resolve(refuse('unsupported_media_type', 'Send the body without Content-Encoding.'))
  if (req.headers.expect !== undefined) res.writeContinue()
  return readBody(req, limit)
}

function parseBody(
  req: IncomingMessage,
  bytes: Buffer,
  rule: BodyRule,
  check: Check,
): { readonly value: unknown } | Refusal {
  if (bytes.length === 0 && !rule.required) return { value: undefined }
  if (bytes.length === 0) return refuse('invalid_body', 'This operation needs a JSON body.')
  if (!/^application\/json *(;|$)/i.test(req.headers['content-type'] ?? '')) return refuse('unsupported_media_type')
  const parsed = parseStrictJson(bytes)
  if ('problem' in parsed) return refuse('invalid_body', `The body ${parsed.problem}.`)
  const errors = check(parsed.value)
  return errors.length === 0 ? parsed : refuse('invalid_body', undefined, { errors })
}

const checkObject: Check = value => (isObject(value) ? [] : [{ field: '', message: 'must be an object' }])
