import { readFileSync } from 'node:fs'

/** `own` lets any active agent in, for what belongs to it; the others are roles. */
export type Access = 'own' | 'agent' | 'reviewer' | 'auditor' | 'admin'

export interface QueryParameter {
  readonly name: string
  /** JSON pointer of its schema in the document. */
  readonly schema: string
  readonly type: string
  readonly default: string | number | undefined
}

export interface BodyRule {
  readonly required: boolean
  /** JSON pointer of its schema in the document; undefined when its handler checks the body. */
  readonly schema: string | undefined
  /** It is no JSON: its handler gets the bytes, which it must have to verify them. */
  readonly isForm: boolean
}

export interface ApiOperation {
  readonly id: string
  /** Upper case. */
  readonly method: string
  /** As in the document: `/agents/{agentId}`. */
  readonly path: string
  /** The caller needs one of these roles; empty: public. */
  readonly access: readonly Access[]
  /** Whether it is served where agents call, when people have an entrypoint of their own. */
  readonly forAgents: boolean
  readonly query: readonly QueryParameter[]
  /** Whether it ignores query parameters that it does not declare. */
  readonly anyQuery: boolean
  readonly body: BodyRule | undefined
}

interface Parameter {
  readonly $ref?: string
  readonly name: string
  readonly in: string
  readonly schema: { readonly type: string; readonly default?: string | number }
}

interface OperationObject {
  readonly operationId: string
  readonly 'x-roles'?: readonly Access[]
  readonly 'x-handled-by'?: string
  /** A public operation that agents use too. */
  readonly 'x-for-agents'?: boolean
  /** Monitors and identity providers add parameters to the URL. */
  readonly 'x-any-query'?: boolean
  readonly 'x-body-checked-by'?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, unknown>> }
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly parameters: Readonly<Record<string, Parameter>>
    readonly schemas: Readonly<Record<'ExplainRequest', { readonly properties: object; readonly required: string[] }>>
  }
}

/** The text of openapi.json, which lies two folders up from here in the sources and in the package alike. */
export const openApiText = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')

export const openApi: OpenApiDocument = JSON.parse(openApiText)

/** The document for a gateway whose metrics need no token (Telemetry:Metrics:Public). */
export function withPublicMetrics(document: OpenApiDocument): OpenApiDocument {
  const { get } = document.paths['/metrics'] ?? {}
  if (get === undefined) return document
  return { ...document, paths: { ...document.paths, '/metrics': { get: { ...get, 'x-roles': [] } } } }
}

const formType = 'application/x-www-form-urlencoded'

/** Every operation that the control plane answers; those of the proxy (`x-handled-by`) are left out. */
export function readOperations(document: OpenApiDocument): readonly ApiOperation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation['x-handled-by'] === undefined)
      .map(([method, operation]) => readOperation(document, `/paths/${escapePointer(path)}/${method}`, operation)),
  )
}

function readOperation(document: OpenApiDocument, pointer: string, operation: OperationObject): ApiOperation {
  const [, , path = '', method = ''] = pointer.split('/')
  const access = operation['x-roles']
  if (access === undefined) throw new TypeError(`openapi.json: ${operation.operationId} has no x-roles`)
  if (path.split('{').length > 2) throw new TypeError(`openapi.json: ${path} has more than one parameter`)
  return {
    id: operation.operationId,
    method: method.toUpperCase(),
    path: path.replaceAll('~1', '/'),
    access,
    forAgents: access.includes('own') || operation['x-for-agents'] === true,
    query: (operation.parameters ?? []).flatMap((parameter, index) =>
      readQueryParameter(document, `${pointer}/parameters/${index}`, parameter),
    ),
    anyQuery: operation['x-any-query'] === true,
    body: operation.requestBody && {
      required: operation.requestBody.required,
      isForm: formType in operation.requestBody.content,
      schema:
        operation['x-body-checked-by'] === undefined
          ? `${pointer}/requestBody/content/application~1json/schema`
          : undefined,
    },
  }
}

function readQueryParameter(document: OpenApiDocument, pointer: string, parameter: Parameter): QueryParameter[] {
  const name = parameter.$ref?.replace('#/components/parameters/', '')
  const found = name === undefined ? parameter : document.components.parameters[name]
  if (found?.in !== 'query') return []
  const at = name === undefined ? pointer : `/components/parameters/${name}`
  return [{ name: found.name, schema: `${at}/schema`, type: found.schema.type, default: found.schema.default }]
}

/** RFC 6901 section 3; no path of ours has a tilde. */
function escapePointer(path: string): string {
  return path.replaceAll('/', '~1')
}
