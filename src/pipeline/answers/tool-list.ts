/** Lists of tools in the answers of MCP servers: denied tools are removed, the others are recorded. */

import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { ListedTool } from '../../agents/tools.ts'
import { canonicalPieces } from '../../base/json.ts'
import { redactPath } from '../../base/redact.ts'
import { JsonDocument, JsonReading } from '../../policy/request/json.ts'
import { memberOf } from '../../policy/request/names.ts'
import { stepsPerTurn } from '../../policy/turns/evaluation.ts'
import { isRecord } from '../../policy/values/path.ts'
import { unreadable } from '../../policy/values/truth.ts'
import type { Sendable } from '../exchange.ts'
import { wouldDenyTool } from '../outbound/live.ts'
import type { ReaderParts } from '../parts.ts'
import { workInTurns } from '../work-turns.ts'
import { longestDocument } from './held-document.ts'

const maxValues = 50_000
const maxTools = 1_000
/**
 * Tools that are decided in one turn of the event loop, and the longest turn, milliseconds. One tool takes 1 ms with 1,000
 * rules.
 */
const toolsPerTurn = 100
const turnMs = 1

export interface ReadList {
  /** The answer as the agent gets it. */
  readonly bytes: Buffer
  readonly isChanged: boolean
}

/**
 * Reads a JSON-RPC message, or a batch of them, in turns of the event loop, and takes the denied tools out of its lists.
 *
 * @returns undefined when the message cannot be read, or has too many tools
 */
export async function readToolList(
  bytes: Buffer,
  exchange: Sendable,
  parts: ReaderParts,
): Promise<ReadList | undefined> {
  const value = await parseInTurns(bytes, exchange.agent.id, parts)
  if (value === undefined) return undefined
  const listed: ListedTool[] = []
  let isChanged = false
  for (const message of Array.isArray(value) ? value : [value]) {
    const result = memberOf(message, 'result')
    const tools = memberOf(result, 'tools')
    // Clients that ignore letter case may find another list.
    if (tools === unreadable) return undefined
    if (!isRecord(result) || !Array.isArray(tools)) continue
    if (tools.length > maxTools) return undefined
    const kept = await visibleTools(tools, exchange, parts)
    listed.push(...(await digestsOf(kept, exchange.agent.id, parts)))
    if (kept.length === tools.length) continue
    isChanged = true
    result['tools'] = kept
    // Another agent may see other tools.
    if (result['cacheScope'] === 'public') result['cacheScope'] = 'private'
  }
  if (listed.length > 0) await note(listed, exchange, parts)
  const shown = isChanged ? Buffer.from(JSON.stringify(value)) : bytes
  return { bytes: shown, isChanged }
}

async function parseInTurns(bytes: Buffer, agentId: string, { workTurns }: ReaderParts): Promise<unknown> {
  if (bytes.length > longestDocument || !isUtf8(bytes)) return undefined
  const reading = new JsonReading(bytes, maxValues)
  await workInTurns(reading, agentId, workTurns)
  const { result } = reading
  return result instanceof JsonDocument ? result.value : undefined
}

/** A tool as the server sent it. */
type Tool = Readonly<Record<string, unknown>> & { readonly name: string }

async function visibleTools(
  tools: readonly unknown[],
  exchange: Sendable,
  parts: ReaderParts,
): Promise<readonly Tool[]> {
  const kept: Tool[] = []
  const { clock, config, workTurns } = parts
  const filters = config.Mcp.FilterTools && config.Policy.Mode !== 'observe'
  let left = 0
  let end = 0
  for (const tool of tools) {
    if (left === 0 || clock.steady() >= end) {
      await workTurns.next(exchange.agent.id, true)
      left = toolsPerTurn
      end = clock.steady() + turnMs
    }
    left -= 1
    // A tool without a name cannot be decided, nor called.
    if (isTool(tool) && !(filters && wouldDenyTool(exchange, tool.name, parts))) kept.push(tool)
  }
  return kept
}

function isTool(value: unknown): value is Tool {
  return typeof memberOf(value, 'name') === 'string'
}

/** Cost of a piece of JSON, in written characters. */
const stepsPerPiece = 16

/** The digests of the definitions of tools, computed in turns of the event loop. */
async function digestsOf(tools: readonly Tool[], agentId: string, { workTurns }: ReaderParts): Promise<ListedTool[]> {
  const listed: ListedTool[] = []
  let left = 0
  for (const tool of tools) {
    // These members may change with each answer, and no model reads them.
    const { icons: _, _meta: __, ...said } = tool
    let text = ''
    for (const piece of canonicalPieces(said)) {
      if (left <= 0) {
        await workTurns.next(agentId, true)
        workTurns.spend(stepsPerTurn)
        left = stepsPerTurn
      }
      text += piece
      left -= piece.length + stepsPerPiece
    }
    listed.push({ name: tool.name, digest: digestOf(text) })
  }
  return listed
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** The agent gets its list after a change is recorded, or could not be recorded. */
async function note(tools: readonly ListedTool[], exchange: Sendable, parts: ReaderParts): Promise<void> {
  const { agent, target, requestId } = exchange
  // Queries may hold secrets.
  const query = target.query === undefined ? '' : `?${digestOf(target.query).slice(0, 16)}`
  const server = `${target.origin.key}${redactPath(target.path)}${query}`
  try {
    await parts.noteTools({ agentId: agent.id, server, tools, requestId })
  } catch (error) {
    parts.report('the tools of an MCP server could not be noted', error)
  }
}
