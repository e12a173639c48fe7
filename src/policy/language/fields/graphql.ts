/** Fields of GraphQL requests, as servers read them over HTTP: by POST, and by GET from the query. */
import { type DocumentNode, Kind, Lexer, parse, type SelectionSetNode, Source, TokenKind } from 'graphql/language'
import { parseStrictJson } from '../../../base/json.ts'
import type { Facts } from '../../request/facts.ts'
import { memberOf } from '../../request/names.ts'
import { share, spend } from '../../turns/evaluation.ts'
import { isRecord, Messages, Several } from '../../values/path.ts'
import { missing, unreadable } from '../../values/truth.ts'

/** Longer documents, deeper ones and those of more tokens are unreadable: parsing is one piece of work. */
const longest = 131_072
const maxTokens = 5_000
const deepest = 200
/** Steps that a document takes. 5,000 tokens take 2 ms. */
const stepsPerCharacter = 1
const stepsPerToken = 12
/** Requests in a batch. */
const maxRequests = 50

/** What one request asks for. */
interface GraphqlOperation {
  readonly operation: string
  readonly name: string | typeof missing
  readonly fields: readonly string[]
}

type Read = GraphqlOperation | typeof missing | typeof unreadable

/** Three fields read the same documents. */
const known = new WeakMap<Facts, readonly Read[] | Read>()

function operationsOf(facts: Facts): readonly Read[] | Read {
  const found = known.get(facts) ?? readOperations(facts)
  known.set(facts, found)
  return found
}

/** One value, or one for each request of a batch. */
function ofEach(facts: Facts, read: (operation: GraphqlOperation) => unknown): unknown {
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

/** Reads a member of a request, wherever it stands. */
type Members = (key: string) => unknown

const membersOf =
  (value: unknown): Members =>
  key =>
    memberOf(value, key)

function readOperations(facts: Facts): readonly Read[] | Read {
  const inUrl: Members = key => facts.query.valueOf(key)
  const isInUrl = readsAsRequest(inUrl)
  const { body } = facts
  if (body === undefined) throw new Error('cannot happen: read before the body is known')
  if (body.kind === 'none') return readRequest(inUrl)
  if (facts.mediaType === 'application/graphql') {
    const { text } = body
    return typeof text !== 'string' || isInUrl ? unreadable : readRequest(membersOf({ query: text }))
  }
  const { value } = body
  if (value === unreadable) return unreadable
  const found = Array.isArray(value) ? readBatch(facts, value) : readRequest(key => body.member(key))
  // Some servers prefer the URL, others the body.
  if (found === missing) return readRequest(inUrl)
  return isInUrl || inUrl('id') !== missing ? unreadable : found
}

/** Requests of a batch that were read in earlier turns. */
const begun = new WeakMap<Facts, Read[]>()

function readBatch(facts: Facts, requests: readonly unknown[]): readonly Read[] | Read {
  if (!hasRequest(requests)) return missing
  if (requests.length > maxRequests) return unreadable
  const read = begun.get(facts) ?? []
  begun.set(facts, read)
  for (const request of requests.slice(read.length)) read.push(readRequest(membersOf(request)))
  return read
}

/** How far the elements of a batch were looked at in this turn and earlier ones: there may be 100,000. */
const looks = new WeakMap<object, { at: number }>()
const stepsPerLook = 64

function hasRequest(requests: readonly unknown[]): boolean {
  const look = looks.get(requests) ?? { at: 0 }
  looks.set(requests, look)
  for (; look.at < requests.length; look.at++) {
    share(stepsPerLook)
    if (readsAsRequest(membersOf(requests[look.at]))) return true
  }
  return false
}

/** Members that name a document which the server has stored. The gateway does not know its content. */
const references = [
  ...['documentId', 'document_id', 'docId', 'doc_id', 'queryId', 'query_id', 'operationId', 'operation_id'],
  ...['persistedQuery', 'persisted', 'queryHash', 'sha256Hash'],
]
const asked = ['query', 'operationName', 'extensions', ...references]

const hasOne = (members: Members, keys: readonly string[]): boolean => keys.some(key => members(key) !== missing)

/** Other APIs have an `id` too: it names a document where there are variables for one. */
function readsAsRequest(members: Members): boolean {
  return hasOne(members, asked) || (hasOne(members, ['id']) && hasOne(members, ['variables']))
}

function readRequest(members: Members): Read {
  if (!readsAsRequest(members)) return missing
  const query = members('query')
  const name = members('operationName')
  const operationName = name === missing || name === '' ? null : name
  if (typeof query !== 'string' || (operationName !== null && typeof operationName !== 'string')) return unreadable
  // Some servers prefer the document that they have stored to the one that is sent.
  if (hasOne(members, ['id', ...references]) || namesDocument(members('extensions'))) return unreadable
  const document = parseDocument(query)
  return document === undefined ? unreadable : readOperation(document, operationName)
}

/** Whether the extensions of a request may name a stored document. In a URL or form they are JSON text. */
function namesDocument(extensions: unknown): boolean {
  if (extensions === missing || extensions === null || extensions === '') return false
  const value = typeof extensions === 'string' ? parsed(extensions) : extensions
  return !isRecord(value) || hasOne(membersOf(value), ['id', ...references])
}

function parsed(text: string): unknown {
  if (text.length > longest) return undefined
  share(text.length * stepsPerCharacter)
  const read = parseStrictJson(Buffer.from(text))
  return 'value' in read ? read.value : undefined
}

function parseDocument(text: string): DocumentNode | undefined {
  if (text.length > longest) return undefined
  share(text.length * stepsPerCharacter)
  try {
    const tokens = countTokens(text)
    if (tokens === undefined) return undefined
    spend(tokens * stepsPerToken)
    return parse(text, { noLocation: true, maxTokens: maxTokens })
  } catch {
    return undefined
  }
}

const openings: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L])
const closings: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R])

/**
 * Undefined when there are too many tokens, or too many brackets are open at once: the parser calls itself for each.
 * Brackets in comments and texts are no tokens, so they cannot hide others.
 *
 * @throws GraphQLError for characters that are no token
 */
function countTokens(text: string): number | undefined {
  const lexer = new Lexer(new Source(text))
  let depth = 0
  for (let count = 0; count <= maxTokens; count++) {
    const { kind } = lexer.advance()
    if (kind === TokenKind.EOF) return count
    if (openings.has(kind)) depth++
    else if (closings.has(kind)) depth--
    if (depth > deepest) return undefined
  }
  return undefined
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
