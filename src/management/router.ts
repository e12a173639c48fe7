import type { ServerResponse } from 'node:http'
import findMyWay from 'find-my-way'
import { createChecks } from '../api/check.ts'
import { type ApiOperation, type OpenApiDocument, readOperations } from '../api/openapi.ts'
import { howToCall, isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { Incoming } from '../http/accept.ts'
import { type Reply, sendRefusal, sendReply } from '../http/respond.ts'
import type { Service } from '../http/service.ts'
import { orUnavailable } from '../storage/store.ts'
import type { Handlers } from './call.ts'
import { inSpan } from './call-spans.ts'
import type { Guard } from './guard.ts'
import { createInputs, type Inputs } from './inputs.ts'
import type { ManagementParts } from './parts.ts'

/** Room for the longest name, of a policy: 128 characters, each percent-encoded. */
const maxParamLength = 384

/**
 * Answers one call of the control plane. Rejects on a fault of the gateway only.
 *
 * @param serves without `management`, the operations that agents use alone
 */
export type Management = (call: ManagementArrival, serves: ReadonlySet<Service>) => Promise<void>

type ManagementArrival = Pick<Incoming, 'req' | 'res' | 'fields' | 'requestId'>

const notHere = refuse(
  'not_found',
  'This address serves agents. People and their programs call that of System:Server:Management.',
)

interface ManagementRoute {
  readonly operation: ApiOperation
  readonly inputs: Inputs
}

interface RouteMatch {
  readonly route: ManagementRoute
  readonly named: string
}

/** What hears of each answer. */
type RouterParts = Pick<ManagementParts, 'countAnswer' | 'tracing' | 'clock'>

/**
 * Routes calls to handlers by what openapi.json says: path, method, roles, query, body.
 *
 * @throws TypeError when an operation has no handler, or a handler no operation
 */
export function createRouter(
  document: OpenApiDocument,
  handlers: Handlers,
  guard: Guard,
  { countAnswer, ...spans }: RouterParts,
): Management {
  const operations = readOperations(document)
  assertComplete(operations, handlers)
  const find = createFinder(operations, createChecks(document))

  async function answer(
    { req, res, requestId }: ManagementArrival,
    serves: ReadonlySet<Service>,
  ): Promise<Reply | Refusal> {
    const foreign = guard.checkOrigin(req)
    if (foreign !== undefined) return foreign
    const [path = '', search = ''] = splitTarget(req.url ?? '')
    if (!isCleanPath(path)) return refuse('invalid_parameter', 'The path is not validly percent-encoded text.')
    const match = find(req.method === 'HEAD' ? 'GET' : (req.method ?? ''), path)
    if (isRefusal(match)) return match
    const { operation, inputs } = match.route
    if (!operation.forAgents && !serves.has('management')) return notHere
    const open = operation.access.length === 0
    const caller = open ? undefined : await guard.admit(req, operation, requestId)
    if (isRefusal(caller)) return caller
    const query = inputs.readQuery(search)
    if (isRefusal(query)) return query
    const body = await inputs.readBody(req, res)
    if (isRefusal(body)) return body
    // Reading the body may have taken long.
    const problem = caller && guard.problemNow(caller, operation)
    if (problem !== undefined) return problem
    const left = leaving(res)
    const call = { req, requestId, left: left.signal, named: match.named, query, body: body.value }
    if (caller === undefined) return handlers.open[operation.id]!(call)
    res.once(
      'close',
      guard.watch(caller, operation, () => left.abort()),
    )
    return handlers.guarded[operation.id]!({ ...call, caller, problemNow: () => guard.problemNow(caller, operation) })
  }

  function operationOf({ method = '', url = '' }: Incoming['req']): ApiOperation | undefined {
    const match = find(method === 'HEAD' ? 'GET' : method, splitTarget(url)[0])
    return isRefusal(match) ? undefined : match.route.operation
  }

  return async (call, serves) => {
    const { res, requestId } = call
    const reply = await inSpan(call, () => orUnavailable(answer(call, serves)), { ...spans, operationOf })
    countAnswer(reply.status)
    if (isRefusal(reply)) sendRefusal(res, reply, requestId)
    else await sendReply(res, reply, requestId)
  }
}

type Finder = (method: string, path: string) => RouteMatch | Refusal

function createFinder(operations: readonly ApiOperation[], checks: ReturnType<typeof createChecks>): Finder {
  // One entry for a path with all its methods, so that a fixed path is never taken for a parameter of another.
  const paths = findMyWay({ maxParamLength })
  for (const [path, here] of Map.groupBy(operations, operation => operation.path)) {
    const routes = here.map((operation): [string, ManagementRoute] => [
      operation.method,
      { operation, inputs: createInputs(operation, checks) },
    ])
    paths.on('GET', path.replace(/\{\w+\}/, ':named'), () => {}, new Map(routes))
  }

  return (method, path) => {
    const found = paths.find('GET', path)
    if (found === null) return refuse('not_found', `The gateway has nothing under this path. ${howToCall}`)
    const routes: ReadonlyMap<string, ManagementRoute> = found.store
    const route = routes.get(method)
    if (route !== undefined) return { route, named: found.params['named'] ?? '' }
    const offered = [...routes.keys()]
    if (routes.has('GET')) offered.push('HEAD')
    return refuse('method_not_allowed', undefined, { headers: ['Allow', offered.join(', ')] })
  }
}

function leaving(res: ServerResponse): AbortController {
  const left = new AbortController()
  res.once('close', () => {
    if (!res.writableFinished) left.abort()
  })
  return left
}

function splitTarget(target: string): readonly [string, string] {
  const mark = target.indexOf('?')
  return mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
}

/** Whether the path decodes as UTF-8 and holds no control characters and no fragment. */
function isCleanPath(path: string): boolean {
  try {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    return !/[\u0000-\u001f\u007f]/.test(decodeURIComponent(path)) && !path.includes('#')
  } catch {
    return false
  }
}

function assertComplete(operations: readonly ApiOperation[], handlers: Handlers): void {
  const wanted = operations.map(({ id, access }) => `${access.length === 0 ? 'open' : 'guarded'} ${id}`)
  const offered = Object.entries(handlers).flatMap(([kind, map]) => Object.keys(map).map(id => `${kind} ${id}`))
  const missing = wanted.filter(id => !offered.includes(id))
  const orphans = offered.filter(id => !wanted.includes(id))
  if (missing.length + orphans.length === 0) return
  throw new TypeError(`openapi.json: without a handler: [${missing}]; handlers without an operation: [${orphans}]`)
}
