import { chatJson, pictureJson } from './bodies.ts'
import type { Request } from './load.ts'

/** A kind of request that agents send, beside the small GET. All go to bench/origin.ts, which reads what it is sent. */
export interface Work {
  readonly name: string
  readonly about: string
  readonly method: 'GET' | 'POST'
  /** At the upstream. */
  readonly path: string
  readonly body?: string
  /** Header fields beside those that each has. */
  readonly headers?: Readonly<Record<string, string>>
  /** The upstream is spoken to in TLS, and its certificate verified. */
  readonly tls?: boolean
  /** Each request comes on a connection of its own. */
  readonly fresh?: boolean
  /** The upstream sets the pace: the proxy is never as busy as it can be. */
  readonly isPaced?: boolean
  /** Of the load, where others would be too many. */
  readonly connections?: number
  /** Requests in a slice: some 20 to 200 ms of work. */
  readonly perSlice: number
  /** CPU time of the gateway at most, in that of HAProxy. */
  readonly goal: number
  /** The same when no rule and no signal of risk reads the body. */
  readonly unreadGoal?: number
}

const kibibyte = 1_024
const chat = (kibibytes: number): Pick<Work, 'method' | 'path' | 'body'> => ({
  method: 'POST',
  path: '/v1/chat',
  body: chatJson(kibibytes * kibibyte),
})
const picture = (kibibytes: number): Pick<Work, 'method' | 'path' | 'body'> => ({
  method: 'POST',
  path: '/v1/chat',
  body: pictureJson(kibibytes * kibibyte),
})
const get = (path: string): Pick<Work, 'method' | 'path'> => ({ method: 'GET', path })

/** What is sent where a road says nothing else. */
export const smallGet: Pick<Work, 'method' | 'path'> = get('/items')

export const works: readonly Work[] = [
  { ...chat(16), name: 'post-16k', about: 'POST of 16 KiB of chat JSON', perSlice: 400, goal: 1.3, unreadGoal: 1.1 },
  { ...chat(128), name: 'post-128k', about: 'POST of 128 KiB of chat JSON', perSlice: 128, goal: 1.6, unreadGoal: 1.2 },
  { ...chat(1_024), name: 'post-1m', about: 'POST of 1 MiB of chat JSON', perSlice: 64, goal: 2.5, unreadGoal: 1.3 },
  { ...picture(1_024), name: 'picture-1m', about: 'POST of 1 MiB of base64 in chat JSON', perSlice: 64, goal: 2.5 },
  {
    ...picture(7_168),
    ...{ name: 'picture-7m', about: 'POST of 7 MiB of base64 in chat JSON', connections: 8, perSlice: 16, goal: 2.5 },
  },
  { ...get('/bytes/1048576'), name: 'down-1m', about: 'download of 1 MiB', perSlice: 64, goal: 1.2 },
  {
    ...get('/events/100/150/5'),
    ...{ name: 'events', about: 'stream of 100 events of 150 bytes, 5 ms apart', perSlice: 64, goal: 1.5 },
    isPaced: true,
  },
  { ...get('/items'), name: 'tls', about: 'GET, TLS to the upstream', tls: true, perSlice: 1_000, goal: 1.15 },
  { ...chat(16), name: 'tls-post', about: 'POST of 16 KiB, TLS to the upstream', tls: true, perSlice: 400, goal: 1.3 },
  {
    ...get('/items'),
    ...{ name: 'new-connections', about: 'GET, each on a new connection', fresh: true, perSlice: 400, goal: 1.8 },
  },
]

/** Calls of models, at paths by which the gateway knows them. */
export const modelWorks: readonly Work[] = [
  {
    ...{ name: 'llm-events', about: 'stream of 100 events of 150 bytes, 5 ms apart, of a model', method: 'POST' },
    ...{ path: '/events/100/150/5/v1/chat/completions', perSlice: 64, goal: 0 },
    body: chatJson(512),
  },
  {
    ...{
      name: 'llm-16k',
      about: 'POST of 16 KiB of chat JSON to a model',
      method: 'POST',
      path: '/v1/chat/completions',
    },
    ...{ perSlice: 400, goal: 0 },
    body: chatJson(16 * kibibyte),
  },
]

export type WorkRequest = Pick<Work, 'method' | 'path' | 'body' | 'headers' | 'fresh'>

/** The request of a work through a proxy, token and all: everyone gets the same bytes. */
export function requestOf(
  { method, path, body, headers: more = {}, fresh = false }: WorkRequest,
  { proxy, upstream, token }: { readonly proxy: string; readonly upstream: string; readonly token: string },
): Request {
  const headers = {
    'Gateway-Authorization': `Bearer ${token}`,
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...(fresh ? { Connection: 'close' } : {}),
    ...more,
  }
  const request = { url: `${proxy}/proxy/${upstream}${path}`, method, headers }
  return body === undefined ? request : { ...request, body }
}
