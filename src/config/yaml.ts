import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import {
  describeMistake,
  firstMistakes,
  type Mistake,
  type Position,
  positionsIn,
  type YamlProblem,
} from './yaml-problems.ts'

/** Aliases of one document that may be followed; more is a bomb (policy-language section 8, E_YAML). */
const maxAliases = 100

/** A YAML document as a value, which still knows where each part of it stands. */
export interface YamlText {
  readonly value: unknown
  /** Position of the part at `path` (keys and indexes); that of the nearest part around it when it is absent. */
  locate(path: readonly string[]): Position
}

/**
 * Parses one YAML 1.2 document. A key given twice, an unknown tag and a bomb of aliases are problems. Of mistakes in syntax
 * only the first is reported.
 */
export function parseYaml(text: string): YamlText | { readonly problems: readonly YamlProblem[] } {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  const at = positionsIn(lines)
  const found = firstMistakes([...document.errors, ...document.warnings])
  const mistakes = found.length > 0 ? found : danglingAliases(document)
  if (mistakes.length > 0) {
    return { problems: mistakes.map(mistake => ({ ...at(mistake.offset), ...describeMistake(text, mistake) })) }
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: maxAliases })
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

/** An alias stands for the node above it that has its anchor. */
function danglingAliases(document: Document): Mistake[] {
  const found: Mistake[] = []
  const anchors = new Set<string>()
  visit(document, {
    Node(_, node) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.add(node.anchor)
      } else if (!anchors.has(node.source)) {
        found.push({ offset: node.range?.[0] ?? 0, code: 'UNKNOWN_ALIAS', message: '' })
      }
    },
  })
  return found
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
