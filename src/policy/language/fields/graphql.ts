/** Fields of GraphQL requests, as servers read them over HTTP: by POST, and by GET from the query. */
import { type DocumentNode, Kind, parse, type SelectionSetNode } from 'graphql/language'
import type { Facts } from '../../request/facts.ts'
import { spend } from '../../turns/evaluation.ts'
import { isRecord, Messages, Several } from '../../values/path.ts'
import { missing, unreadable } from '../../values/truth.ts'

/** Longer documents, deeper ones and those of more tokens are unreadable: parsing is one piece of work. */
const longest = 131_072
const mostTokens = 5_000
const deepest = 200
/** Steps that parsing takes at most. */
const stepsPerCharacter = 2
/** Requests in a batch. */
const mostRequests = 50

/** What one request asks for. */
interface Operation {
  readonly operation: string
  readonly name: string | typeof missing
  readonly fields: readonly string[]
}

type Read = Operation | typeof missing | typeof unreadable

/** Three fields read the same documents. */
const known = new WeakMap<Facts, readonly Read[] | Read>()

function operationsOf(facts: Facts): readonly Read[] | Read {
  const found = known.get(facts) ?? readOperations(facts)
  known.set(facts, found)
  return found
}

/** One value, or one for each request of a batch. */
function ofEach(facts: Facts, read: (operation: Operation) => unknown): unknown {
  const found = operationsOf(facts)
  const take = (one: Read): unknown => (typeof one === 'symbol' ? one : read(one))
  if (!isBatch(found)) return take(found)
  const values = found.map(take)
  return values.includes(unreadable) ? unreadable : new Messages(values)
}

const isBatch = (found: readonly Read[] | Read): found is readonly Read[] => Array.isArray(found)

export const graphqlOperation = (facts: Facts): unknown => ofEach(facts, ({ operation }) => operation)
export const graphqlName = (facts: Facts): unknown => ofEach(facts, ({ name }) => name)
export const graphqlFields = (facts: Facts): unknown => ofEach(facts, ({ fields }) => new Several(fields))

function readOperations(facts: Facts): readonly Read[] | Read {
  const inUrl = readUrl(facts)
  const { body } = facts
  if (body === undefined) throw new Error('cannot happen: read before the body is known')
  if (body.kind === 'none') return inUrl === undefined ? missing : readRequest(inUrl)
  if (facts.mediaType === 'application/graphql') {
    const { text } = body
    return typeof text !== 'string' || inUrl !== undefined ? unreadable : readRequest({ query: text })
  }
  const { value } = body
  if (value === unreadable) return unreadable
  const found = Array.isArray(value) ? readBatch(value) : readRequest(value)
  // Some servers prefer the URL, others the body.
  if (inUrl === undefined) return found
  return found === missing ? readRequest(inUrl) : unreadable
}

/** Undefined when the URL contains no part of a GraphQL request. */
function readUrl({ query }: Facts): Readonly<Record<string, unknown>> | undefined {
  return readsAsRequest(query) ? query : undefined
}

function readBatch(requests: readonly unknown[]): readonly Read[] | Read {
  const isOne = requests.some(request => readsAsRequest(request))
  if (!isOne) return missing
  return requests.length > mostRequests ? unreadable : requests.map(readRequest)
}

/** Members that name a document which the server has stored. The gateway does not know its content. */
const references = ['extensions', 'documentId', 'doc_id', 'queryId', 'persistedQuery', 'operationName']

function readsAsRequest(value: unknown): boolean {
  return isRecord(value) && ['query', ...references].some(key => Object.hasOwn(value, key))
}

function readRequest(request: unknown): Read {
  if (!isRecord(request) || !readsAsRequest(request)) return missing
  const { query, operationName = null } = request
  if (typeof query !== 'string' || (operationName !== null && typeof operationName !== 'string')) return unreadable
  const document = parseDocument(query)
  return document === undefined ? unreadable : readOperation(document, operationName === '' ? null : operationName)
}

function parseDocument(text: string): DocumentNode | undefined {
  if (text.length > longest || depthOf(text) > deepest) return undefined
  spend(text.length * stepsPerCharacter)
  try {
    return parse(text, { noLocation: true, maxTokens: mostTokens })
  } catch {
    return undefined
  }
}

/** Most brackets that are open at once; those in texts count as well. */
function depthOf(text: string): number {
  let depth = 0
  let most = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 123 || code === 91 || code === 40) most = Math.max(most, ++depth)
    else if (code === 125 || code === 93 || code === 41) depth--
  }
  return most
}

/** The operation that a server runs; unreadable where it would refuse to choose. */
function readOperation({ definitions }: DocumentNode, wanted: string | null): Read {
  const operations = definitions.filter(definition => definition.kind === Kind.OPERATION_DEFINITION)
  const chosen = wanted === null ? operations : operations.filter(({ name }) => name?.value === wanted)
  const [operation] = chosen
  if (operation === undefined || chosen.length > 1) return unreadable
  const fragments = new Map<string, SelectionSetNode>()
  for (const definition of definitions) {
    if (definition.kind !== Kind.FRAGMENT_DEFINITION) continue
    if (fragments.has(definition.name.value)) return unreadable
    fragments.set(definition.name.value, definition.selectionSet)
  }
  const fields = new Set<string>()
  if (!collect(operation.selectionSet, fragments, fields)) return unreadable
  return { operation: operation.operation, name: operation.name?.value ?? missing, fields: [...fields] }
}

/** Adds the fields of a selection, those of its fragments too, by their names. False: a fragment is not there. */
function collect(set: SelectionSetNode, fragments: Map<string, SelectionSetNode>, fields: Set<string>): boolean {
  const sets = new Set<SelectionSetNode | undefined>([set])
  // The loop also visits fields that are added meanwhile.
  for (const each of sets) {
    if (each === undefined) return false
    for (const selection of each.selections) {
      if (selection.kind === Kind.FIELD) fields.add(selection.name.value)
      else if (selection.kind === Kind.INLINE_FRAGMENT) sets.add(selection.selectionSet)
      else sets.add(fragments.get(selection.name.value))
    }
  }
  return true
}
