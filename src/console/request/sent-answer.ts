/** What upstreams answered to the last approval of this tab. It is in the memory of the page alone. */
import { effect, signal } from '@preact/signals'
import { type ReadBody, readBytes } from '../body/kind.ts'
import { session } from '../session.ts'
import type { HitlRequest } from '../types.ts'

export interface SentAnswer {
  readonly view: HitlRequest
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Undefined while it comes. */
  readonly body?: ReadBody
  /** What the body lacks. */
  readonly note?: string
}

export const lastAnswer = signal<SentAnswer | undefined>(undefined)

/** Maximum of bytes of an answer that are read. */
const mostBytes = 1_048_576

effect(() => {
  // It is for the person who approved.
  if (session.value.kind === 'none') lastAnswer.value = undefined
})

/** Shows the answer, and its body when that has come. */
export async function keepAnswer(view: HitlRequest, answer: Response): Promise<void> {
  const kept: SentAnswer = { view, status: answer.status, headers: Object.fromEntries(answer.headers) }
  lastAnswer.value = kept
  const { bytes, note } = await readBounded(answer.body)
  // Another approval may have been answered meanwhile.
  if (lastAnswer.peek() !== kept) return
  lastAnswer.value = { ...kept, body: readBytes(bytes, kept.headers), ...(note !== undefined && { note }) }
}

interface Bounded {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly note?: string
}

async function readBounded(body: Response['body']): Promise<Bounded> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0
  const whole = () => joined(chunks, Math.min(length, mostBytes))
  const reader = body?.getReader()
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) return { bytes: whole() }
      chunks.push(value)
      length += value.length
      if (length <= mostBytes) continue
      await reader?.cancel()
      return {
        bytes: whole(),
        note: 'Only the first MiB of the answer was read here. The agent gets all that is kept.',
      }
    }
  } catch {
    return { bytes: whole(), note: 'The answer broke off.' }
  }
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk.subarray(0, length - at), at)
    at += chunk.length
  }
  return bytes
}
