import type { Document, ErrorCode, Node, Pair } from 'yaml'
import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'

/** Aliases of one document that may be followed; more is a bomb (policy-language section 8, E_YAML). */
const MAX_ALIASES = 100

export interface Position {
  /** Both counted from 1. */
  readonly line: number
  readonly column: number
}

export interface YamlProblem extends Position {
  readonly message: string
}

/** A YAML document as a value, which still knows where each part of it stands. */
export interface YamlText {
  readonly value: unknown
  /** Where the part at `path` (`rules[3].conditions[1]`) stands; the nearest part around it when it is absent. */
  locate(path: string): Position
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
  if (found.length > 0)
    return { problems: found.map(({ pos, code, message }) => ({ ...at(pos[0]), message: explain(code, message) })) }
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    return { value, locate: path => at(findOffset(document, path)) }
  } catch (error) {
    // The one thing toJS refuses is too many aliases.
    return { problems: [{ line: 1, column: 1, message: (error as Error).message }] }
  }
}

function explain(code: ErrorCode, message: string): string {
  return code === 'MULTIPLE_DOCS' ? 'a file holds one document; split it at ---' : message
}

function findOffset(document: Document, path: string): number {
  const parts = path.match(/[^.[\]]+/g) ?? []
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const part of parts) {
    const pair = isMap(node) ? (node.items as Pair[]).find(({ key }) => isScalar(key) && key.value === part) : undefined
    node = isSeq(node) ? node.items[Number(part)] : pair?.value
    const found = startOf(pair?.key) ?? startOf(node)
    if (found === undefined) return offset
    offset = found
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined
}
