import { hostPattern } from './formats.ts'
import { boolean, choice, integer, list, optional } from './setting.ts'

/** Settings under `Proxy`: how requests are forwarded. */
export const proxy = {
  Via: boolean(true, 'Add Via: 1.1 agent-gateway, which also detects loops.'),
  Redirects: choice(
    ['Rewrite', 'Pass'],
    'Rewrite',
    'Rewrite points Location and Content-Location of upstreams back at /proxy; Pass leaves them, and clients that follow send their token along.',
  ),
  Cookies: choice(
    ['Scope', 'Pass'],
    'Scope',
    'Scope takes Domain from the cookies of an upstream and puts their Path below /proxy/<origin>; Pass leaves them.',
  ),
  MaxRequestBytes: integer(0, 'Largest request body forwarded, bytes; 0 is no limit.'),
  MaxEvaluatedBodyBytes: integer(8_388_608, 'Most of a body that is held to decide on, bytes.', { min: 1_024 }),
  MaxHeldBytes: integer(
    67_108_864,
    'Bytes of all bodies that are held at once, a quarter of them for one agent; more get 503. Never more than a quarter of the heap limit of node.',
    { min: 65_536 },
  ),
  OversizeBody: choice(
    ['unreadable', 'reject'],
    'unreadable',
    'A body over MaxEvaluatedBodyBytes that a rule must read: decide as unreadable, or answer 413.',
  ),
  ConnectTimeoutSeconds: integer(5, 'Time to connect to an upstream, TLS included.', { min: 1, max: 300 }),
  HeadersTimeoutSeconds: integer(600, 'Time until an upstream starts to answer.', { min: 1, max: 86_400 }),
  IdleTimeoutSeconds: integer(120, 'An upstream whose body stands still this long is cut off.', {
    min: 1,
    max: 86_400,
  }),
  EventStreamIdleSeconds: integer(900, 'The same for event streams (text/event-stream), which may be silent longer.', {
    min: 1,
    max: 86_400,
  }),
  MaxConnectionsPerOrigin: integer(256, 'Connections kept to one origin.', { min: 1, max: 65_535 }),
  MaxConnections: integer(4_096, 'Connections to all upstreams together.', { min: 1, max: 65_535 }),
  MaxWaiting: integer(1_024, 'Requests that wait for a connection to one origin; more get 503.', { min: 0 }),
  RetryIdempotent: boolean(
    true,
    'Send GET, HEAD, OPTIONS, PUT and DELETE once more when a connection that was used before breaks before the answer begins.',
  ),
  Client: choice(
    ['Builtin', 'Undici'],
    'Builtin',
    'What speaks HTTP/1.1 to upstreams. Undici is the second client, for an upstream that the built-in one refuses.',
  ),
  Http2Hosts: list(
    'Hosts, such as api.example.com or *.example.com, that are spoken to in HTTP/2 over TLS if they offer it.',
    hostPattern,
  ),
  CaFile: optional('PEM file of certificate authorities trusted beside the built-in ones.'),
}
