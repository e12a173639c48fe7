import { Document, isMap, isSeq } from 'yaml'

/**
 * A document as YAML, with the maps of inner lists on one line each.
 *
 * @param list a key of the document, whose value is a list of maps
 * @param comments for entries of that list, by their place; they hold no line breaks
 */
export function writeYaml(document: object, list: string, comments: ReadonlyMap<number, string>): string {
  const text = new Document(document)
  const entries = text.get(list)
  for (const [place, entry] of (isSeq(entries) ? entries.items : []).entries()) {
    if (!isMap(entry)) continue
    const comment = comments.get(place)
    if (comment !== undefined) entry.commentBefore = ` ${comment}`
    for (const inner of entry.items.flatMap(({ value }) => (isSeq(value) ? value.items : []))) oneLine(inner)
  }
  return text.toString({ lineWidth: 120, flowCollectionPadding: true })
}

function oneLine(node: unknown): void {
  if (isMap(node)) node.flow = true
}
