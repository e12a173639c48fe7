import { open } from 'node:fs/promises'
import { StartupError } from '../base/refusals.ts'
import type { RequestDescription } from '../policy/request/describe.ts'

/** A line of the access log, or one with a whole request, as far as commands read it. */
export interface RequestLine extends Partial<RequestDescription> {
  readonly method?: string
  readonly origin?: string
  readonly path?: string
  readonly agentId?: string
  readonly bytesIn?: number
  readonly policy?: string
  readonly decision?: string
  readonly status?: number
  readonly verdict?: string
  readonly signals?: readonly string[]
  readonly model?: string
  readonly cost?: number
}

/** @throws StartupError when the file cannot be read */
export async function openLines(path: string): Promise<AsyncIterable<string>> {
  const file = await open(path).catch(unreadable(path))
  return file.readLines()
}

function unreadable(path: string): (error: NodeJS.ErrnoException) => never {
  return ({ code }) => {
    throw new StartupError(`${path} cannot be read (${code})`)
  }
}

/** The log may hold other lines as well. */
export function parseLine(text: string): RequestLine | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const urlOf = (line: RequestLine): string => line.request?.url ?? `${line.origin}${line.path}`
