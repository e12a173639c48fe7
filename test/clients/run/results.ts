/** What each client did in each mode: kept, so that a run that was ended can go on with the others. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Client } from './clients.ts'
import type { Mode } from './modes.ts'

export interface Outcome {
  readonly mode: Mode
  readonly ok: boolean
  readonly seconds: number
}

/** Of one client, with or without the lock. */
export interface Result {
  readonly version: string
  readonly outcomes: readonly Outcome[]
}

const folder = fileURLToPath(new URL('../../../.tap/clients/results', import.meta.url))
const pathOf = (name: string, isLocked: boolean): string => join(folder, `${name}${isLocked ? '-locked' : ''}.json`)

export function keepResult({ client, isLocked, ...result }: Result & { client: Client; isLocked: boolean }): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(pathOf(client.name, isLocked), JSON.stringify(result))
}

/** Undefined when the client has not come to its end. */
export function readResult(name: string, isLocked: boolean): Result | undefined {
  try {
    return JSON.parse(readFileSync(pathOf(name, isLocked), 'utf8')) as Result
  } catch {
    return undefined
  }
}

export const forgetResult = (name: string, isLocked: boolean): void => rmSync(pathOf(name, isLocked), { force: true })

export const hasPassed = (result: Result | undefined): boolean => result?.outcomes.every(({ ok }) => ok) === true
