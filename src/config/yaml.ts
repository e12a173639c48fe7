import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLError } from 'yaml'

/** Aliases of one document that may be followed; more is a bomb (policy-language section 8, E_YAML). */
const mostAliases = 100

export interface Position {
  /** Both counted from 1. */
  readonly line: number
  readonly column: number
}

export interface YamlProblem extends Position {
  /** Says it fully; may repeat a piece of the text. */
  readonly message: string
  /** The kind of mistake; repeats nothing. */
  readonly kind: string
}

/** A YAML document as a value, which still knows where each part of it stands. */
export interface YamlText {
  readonly value: unknown
  /** Position of the part at `path` (keys and indexes); that of the nearest part around it when it is absent. */
  locate(path: readonly string[]): Position
}

/** Parses one YAML 1.2 document. A key given twice, an unknown tag and a bomb of aliases are problems. */
export function parseYaml(text: string): YamlText | { readonly problems: readonly YamlProblem[] } {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    // An empty document has no lines yet.
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const found = [...document.errors, ...document.warnings]
  if (found.length > 0) return { problems: found.map(error => ({ ...at(error.pos[0]), ...describe(error) })) }
  const dangling = danglingAliases(document).map(offset => ({ ...at(offset), ...noAnchor }))
  if (dangling.length > 0) return { problems: dangling }
  try {
    const value: unknown = document.toJS({ maxAliasCount: mostAliases })
    return { value, locate: path => at(findOffset(document, path)) }
  } catch {
    // toJS throws for no other reason.
    return { problems: [{ line: 1, column: 1, message: 'too many aliases', kind: 'too many aliases' }] }
  }
}

/** Names places of a file for people: `policies/x.yaml:8:5` for `rules[3].conditions[1]`. */
export function placesIn(file: string, yaml: YamlText): (path: string) => string {
  return path => {
    const { line, column } = yaml.locate(path.match(/[^.[\]]+/g) ?? [])
    return `${file}:${line}:${column}`
  }
}

const noAnchor = { message: 'unknown alias; put text that begins with * in quotes', kind: 'unknown alias' }

function danglingAliases(document: Document): number[] {
  const found: number[] = []
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) === undefined) found.push(alias.range?.[0] ?? 0)
    },
  })
  return found
}

function describe({ code, message }: YAMLError): Pick<YamlProblem, 'message' | 'kind'> {
  return {
    message: code === 'MULTIPLE_DOCS' ? 'a file must contain one document; split it at ---' : message,
    kind: code.toLowerCase().replaceAll('_', ' '),
  }
}

function findOffset(document: Document, path: readonly string[]): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const part of path) {
    const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === part) : undefined
    node = isSeq(node) ? node.items[Number(part)] : pair?.value
    const found = startOf(pair?.key) ?? startOf(node)
    if (found === undefined) return offset
    offset = found
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}
