import { jsonString, TextSearch } from './text-search.ts'

/**
 * The name of a list of tools, however it is escaped, and in any letter case: clients in Go and .NET ignore it. To those in
 * Go the long s is one as well.
 */
const listName = jsonString('tools', { s: String.raw`\xc5\xbf|\\u017f` })
const longestName = 2 + 6 * 'tools'.length

/** Whether bytes may hold a list of tools. They are whole events, or a whole document. */
export function mayHoldList(bytes: Buffer): boolean {
  return listName.test(bytes.toString('latin1'))
}

/** Searches bytes that are passed on for such a list. */
export const searchForList = (): TextSearch => new TextSearch(listName, longestName)

/** How the older transport of MCP says where its client is to post; readers divide lines in different ways. */
const endpoint = /event:[ \t]*endpoint/
const longestEndpoint = 64

/** Searches a stream for its event `endpoint`. */
export const searchForEndpoint = (): TextSearch => new TextSearch(endpoint, longestEndpoint)
