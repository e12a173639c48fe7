import { type HostPattern, matchesHost, parseHostPatterns } from './host.ts'
import type { Origin } from './origin.ts'

/** A host pattern with a port, as settings name upstreams: `vllm.internal:8000`, `*.example.com`. */
export interface HostAndPort {
  readonly pattern: HostPattern
  /** Undefined: the usual one of the scheme. */
  readonly port: number | undefined
}

/** @throws TypeError when the host is not a host pattern */
export function parseHostAndPort(text: string): HostAndPort {
  const [, host = '', port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? []
  return { pattern: parseHostPatterns([host])[0]!, port: port === undefined ? undefined : Number(port) }
}

export function isAtHost({ pattern, port }: HostAndPort, origin: Origin): boolean {
  const usual = origin.scheme === 'http' ? 80 : 443
  return origin.port === (port ?? usual) && matchesHost(pattern, origin.host)
}
