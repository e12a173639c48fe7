/**
 * What an entrypoint serves. `proxy`: requests for upstreams, and the calls that their senders make of the API.
 * `management`: the whole API, the console and the documentation. `forward`: clients that have the gateway as their proxy.
 */
export type Service = 'proxy' | 'management' | 'forward'
