import { type SegmentClass, segmentClasses } from '../../base/segment-class.ts'

/** Different values that must have been recorded in a place before their class stands for them. */
export const fewestValues = 3
/** Classes of which only values of one length are taken together: their lengths tell kinds of ids apart. */
const ofOneLength = ['hex', 'key']

interface TreeNode {
  readonly children: Map<string, TreeNode>
  /** Whether a path ends here. */
  ends: boolean
}

const emptyNode = (): TreeNode => ({ children: new Map(), ends: false })

/**
 * The patterns of paths that were recorded: values of one class that stand in the same place, and below which the same was recorded,
 * become the class. Words, and the first segment, stay as they are.
 *
 * @param paths segments of each path
 * @param isExact keeps every value
 * @returns for each path the pattern, for `pathMatches`
 */
export function patternsOf(paths: readonly (readonly string[])[], isExact: boolean): readonly string[] {
  const root = emptyNode()
  for (const path of paths) insert(root, path)
  const names = new Map<TreeNode, ReadonlyMap<string, string>>()
  describe(root, 0, isExact, names)
  return paths.map(path => `/${pathPattern(root, path, names).join('/')}`)
}

function insert(root: TreeNode, path: readonly string[]): void {
  let node = root
  for (const segment of path) {
    const next = node.children.get(segment) ?? emptyNode()
    node.children.set(segment, next)
    node = next
  }
  node.ends = true
}

function pathPattern(
  root: TreeNode,
  path: readonly string[],
  names: ReadonlyMap<TreeNode, ReadonlyMap<string, string>>,
): readonly string[] {
  let node: TreeNode | undefined = root
  return path.map(segment => {
    const name = node && names.get(node)?.get(segment)
    node = node?.children.get(segment)
    return name ?? literalSegment(segment)
  })
}

/** What stands below a node, as text; notes the pattern of each of its children. */
function describe(
  node: TreeNode,
  depth: number,
  isExact: boolean,
  names: Map<TreeNode, ReadonlyMap<string, string>>,
): string {
  const below = new Map<string, string>()
  for (const [segment, child] of node.children) below.set(segment, describe(child, depth + 1, isExact, names))
  const ofNode = new Map<string, string>()
  if (depth > 0 && !isExact) {
    for (const { segments, name } of classesAmong(below)) for (const each of segments) ofNode.set(each, name)
  }
  names.set(node, ofNode)
  const all = [...below].map(([segment, text]) => `${ofNode.get(segment) ?? literalSegment(segment)}${text}`)
  return JSON.stringify([node.ends, ...new Set(all)].sort())
}

/** Values of one class with the same below them. */
function classesAmong(below: ReadonlyMap<string, string>): { segments: readonly string[]; name: string }[] {
  const groups = new Map<string, { segments: string[]; found: SegmentClass }>()
  for (const [segment, text] of below) {
    const found = segmentClasses.find(({ holds }) => holds(segment))
    if (found === undefined) continue
    const length = ofOneLength.includes(found.name) ? segment.length : 0
    const key = `${found.name} ${length} ${text}`
    const group = groups.get(key) ?? { segments: [], found }
    group.segments.push(segment)
    groups.set(key, group)
  }
  const many = [...groups.values()].filter(({ segments }) => segments.length >= fewestValues)
  return many.map(({ segments, found: { name } }) => ({ segments, name: `{id:${name}}` }))
}

/** No segment of a path begins with a space. */
const classMark = ' '

/** A segment that stands for any value of a class, among those of paths. */
export const classSegment = (name: string): string => `${classMark}{id:${name}}`

/** A segment in a pattern, standing for itself. */
export function literalSegment(segment: string): string {
  if (segment.startsWith(classMark)) return segment.slice(classMark.length)
  return /[*\\]|^\{.*\}$/.test(segment) ? segment.replace(/[*\\{]/g, '\\$&') : segment
}
