import { jsonString, TextSearch } from './text-search.ts'

/**
 * The name of a list of tools, with any escapes and in any letter case: clients in Go and .NET ignore case. Clients in Go
 * also read the long s as an s.
 */
const listName = jsonString('tools', { s: String.raw`\xc5\xbf|\\u017f` })
const longestName = 2 + 6 * 'tools'.length

/** Whether bytes may hold a list of tools. They are whole events, or a whole document. */
export function mayHoldList(bytes: Buffer): boolean {
  return listName.test(bytes.toString('latin1'))
}

/** Searches bytes that are passed on for a list of tools. */
export const searchForList = (): TextSearch => new TextSearch(listName, longestName)

/**
 * The event in which the older transport of MCP names the URL for posts. The space is optional, and readers divide lines
 * differently.
 */
const endpoint = /event:[ \t]*endpoint/
const longestEndpoint = 64

export const searchForEndpoint = (): TextSearch => new TextSearch(endpoint, longestEndpoint)
