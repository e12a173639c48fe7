/**
 * Sign-in of the console: one-time codes, and tokens that can be renewed for some hours. A token that was not renewed in
 * time is over like any other. Codes are in the store, so that each gateway on it takes them, and only one of them.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../runtime/clock.ts'
import { codeLimits } from '../storage/codes.ts'
import type { AgentRecord, AuditEntry, CodeTable } from '../storage/store.ts'
import type { Issue, TokenReply } from './issue.ts'
import type { SigningKeys } from './key.ts'

/** From signing in to signing in again, milliseconds. */
const sessionMs = 12 * 3_600_000
const codeMs = 60_000

/** A token of the console, and until when it can be renewed. */
export interface SessionReply extends TokenReply {
  /** ISO 8601, UTC. */
  readonly endsAt: string
}

export interface SignInCode {
  readonly code: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

export type ConsoleSignIn = ReturnType<typeof createConsoleSignIn>

interface ConsoleParts {
  readonly clock: Clock
  readonly codes: CodeTable
  readonly keys: Pick<SigningKeys, 'current' | 'verifying'>
  readonly issue: Issue
  readonly trustOf: (agent: AgentRecord) => number
}

/** Bytes of a code that are random. Those after them are a signature. */
const randomBytesOfCode = 16

export function createConsoleSignIn({ clock, codes, keys, issue, trustOf }: ConsoleParts) {
  return {
    /** A code that signs the agent in, once. Only its hash is kept. Rejects with StoreError. */
    async openCode(agentId: string, entry: AuditEntry): Promise<SignInCode> {
      const random = randomBytes(randomBytesOfCode)
      const code = Buffer.concat([random, Buffer.from(await crypto.subtle.sign('HMAC', keys.current, signed(random)))])
      const now = clock.now()
      const expiresAt = now + codeMs
      await codes.keep({ hash: hashOf(code), agentId, expiresAt }, { now, ...codeLimits }, entry)
      return { code: code.toString('base64url'), expiresAt }
    },
    /** The agent of a code, which is used up. Undefined: it is unknown, used or over. Rejects with StoreError. */
    async takeCode(text: string): Promise<string | undefined> {
      const code = Buffer.from(text, 'base64url')
      return (await isSigned(code, keys)) ? codes.take(hashOf(code), clock.now()) : undefined
    },
    /** A token of a new session, or, with `endsAt`, the next one of a session that ends then. */
    async issue(agent: AgentRecord, endsAt = clock.now() + sessionMs): Promise<SessionReply> {
      const { id, name } = agent
      const token = await issue({ id, name, trustScore: trustOf(agent), sessionEndsAt: endsAt })
      return { ...token, endsAt: new Date(endsAt).toISOString() }
    },
  }
}

/** Anybody may try codes: those that no gateway made cost the database nothing. */
async function isSigned(code: Buffer<ArrayBuffer>, { verifying }: ConsoleParts['keys']): Promise<boolean> {
  const [random, signature] = [code.subarray(0, randomBytesOfCode), code.subarray(randomBytesOfCode)]
  const checks = verifying.map(key => crypto.subtle.verify('HMAC', key, signature, signed(random)))
  return (await Promise.all(checks)).includes(true)
}

/** No token is signed like this: its text has no space. */
const signed = (random: Uint8Array): Buffer<ArrayBuffer> => Buffer.concat([Buffer.from('console code '), random])

const hashOf = (code: Uint8Array): string => createHash('sha256').update(code).digest('hex')
