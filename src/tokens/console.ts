/**
 * Sign-in of the console: one-time codes, and tokens that can be renewed for some hours. A token that was not renewed in
 * time is over like any other; nothing is stored, and the registry ends a session at once.
 */
import { createHash, randomBytes } from 'node:crypto'
import { forgetOldest } from '../base/records.ts'
import type { Clock } from '../clock.ts'
import type { AgentRecord } from '../storage/store.ts'
import type { Issue, TokenReply } from './issue.ts'

/** From signing in to signing in again, milliseconds. */
const sessionMs = 12 * 3_600_000
/** Life of a code, milliseconds. */
const codeMs = 60_000
/** Codes that are kept at the same time; the oldest gives way. */
const maxCodes = 100

/** A token of the console, and until when it can be renewed. */
export interface SessionReply extends TokenReply {
  /** ISO 8601, UTC. */
  readonly endsAt: string
}

export interface Code {
  readonly code: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

export interface ConsoleSignIn {
  /** A code that signs the agent in, once. Only its hash is kept. */
  openCode(agentId: string): Code
  /** The agent of a code, which is used up. Undefined: it is unknown, used or over. */
  takeCode(code: string): string | undefined
  /** A token of a new session, or, with `endsAt`, the next one of a session that ends then. */
  issue(agent: AgentRecord, endsAt?: number): Promise<SessionReply>
}

interface ConsoleParts {
  readonly clock: Clock
  readonly issue: Issue
  readonly trustOf: (agent: AgentRecord) => number
}

export function createConsoleSignIn({ clock, issue, trustOf }: ConsoleParts): ConsoleSignIn {
  /** By hash, in the order they were made. */
  const codes = new Map<string, { readonly agentId: string; readonly until: number }>()

  return {
    openCode(agentId) {
      const code = randomBytes(32).toString('base64url')
      const expiresAt = clock.now() + codeMs
      codes.set(hashOf(code), { agentId, until: clock.steady() + codeMs })
      forgetOldest(codes, maxCodes)
      return { code, expiresAt }
    },
    takeCode(code) {
      const hash = hashOf(code)
      const found = codes.get(hash)
      codes.delete(hash)
      return found !== undefined && clock.steady() < found.until ? found.agentId : undefined
    },
    async issue(agent, endsAt = clock.now() + sessionMs) {
      const { id, name } = agent
      const token = await issue({ id, name, trustScore: trustOf(agent), sessionEndsAt: endsAt })
      return { ...token, endsAt: new Date(endsAt).toISOString() }
    },
  }
}

const hashOf = (code: string): string => createHash('sha256').update(code).digest('base64')
