import { type Field, parseField } from '../language/fields/fields.ts'
import { Zone } from '../language/fields/zone.ts'
import type { Facts } from '../request/facts.ts'
import { Several } from '../values/path.ts'
import { missing, unreadable } from '../values/truth.ts'
import { cutText, shownText } from './title.ts'

/**
 * The operation of a request where method and path do not show it: the method and tool of MCP, the operation and root fields
 * of GraphQL (its name is the agent's free choice), the provider and model of a call to a model. The first field of a list
 * says whether the request is one of its kind.
 */
const kinds = [
  ['mcp.method', 'mcp.tool', 'mcp.resource', 'mcp.prompt'],
  ['graphql.operation', 'graphql.fields'],
  ['llm.provider', 'llm.model'],
].map(names => names.map(fieldNamed))

function fieldNamed(name: string): Field {
  const field = parseField(name)
  if (typeof field === 'string') throw new TypeError(field)
  return field
}

/** None of these fields depends on it. */
const utc = new Zone('UTC')

/** For reviewers; null for a plain request, and for one that cannot be read. */
export function operationOf(facts: Facts): string | null {
  for (const kind of kinds) {
    const texts = kind.map(field => knownText(field, facts))
    if (texts[0] !== undefined) return cutText(texts.filter(text => text !== undefined).join(' '))
  }
  return null
}

function knownText(field: Field, facts: Facts): string | undefined {
  const value = field.read(facts, utc)
  if (value === missing || value === unreadable) return undefined
  // A batch has one value for each message.
  const items = value instanceof Several ? value.items.filter(item => item !== missing) : [value]
  return items.length === 0 ? undefined : shownText(field, new Several(items))
}
