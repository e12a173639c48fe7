import { useEffect, useRef, useState } from 'preact/hooks'
import { call, type Failure } from '../api.ts'
import { session } from '../session.ts'

export interface Reading<T> {
  /** What was read last; it stays while it is read again. */
  readonly data: T | undefined
  readonly failure: Failure | undefined
  readonly isReading: boolean
  readonly again: () => void
}

interface State<T> extends Omit<Reading<T>, 'again'> {
  readonly path: string
}

/**
 * Reads `path` of the API, again when it changes and after a new sign-in. An answer that comes too late is dropped.
 *
 * @param everyMs how often it is read again while the page is visible, milliseconds; absent: never
 */
export function useRead<T>(path: string, everyMs?: number): Reading<T> {
  const [state, setState] = useState<State<T>>({ path, data: undefined, failure: undefined, isReading: true })
  const latest = useRef(0)
  const read = async () => {
    const own = ++latest.current
    setState(before => ({ ...before, path, isReading: true }))
    const answer = await call<T>('GET', path)
    if (own !== latest.current) return
    // The dialog over the page asks for a new sign-in; what is shown stays.
    const failure = answer.ok || answer.failure.status === 401 ? undefined : answer.failure
    setState(before => ({ path, data: answer.ok ? answer.data : before.data, failure, isReading: false }))
  }
  const { kind } = session.value
  useEffect(() => {
    if (kind === 'active') void read()
  }, [path, kind])
  useEffect(() => {
    if (everyMs === undefined || kind !== 'active') return
    const timer = setInterval(() => document.visibilityState === 'visible' && void read(), everyMs)
    return () => clearInterval(timer)
  }, [path, kind, everyMs])
  useEffect(() => () => void latest.current++, [])
  return { ...state, again: () => void read() }
}
