import { hostPattern } from './formats.ts'
import { boolean, choice, integer, list, optional } from './setting.ts'

/** Settings under `Proxy`: how requests are forwarded. */
export const proxy = {
  Via: boolean(true, 'Add Via: 1.1 agent-gateway, which also detects loops.'),
  MaxRequestBytes: integer(0, 'Largest request body forwarded, bytes; 0 is no limit.'),
  MaxEvaluatedBodyBytes: integer(8_388_608, 'Maximum of bytes of one body that are held to decide on it.', {
    min: 1_024,
  }),
  MaxHeldBytes: integer(
    67_108_864,
    'Bytes of all bodies held at once, a quarter of them for one agent; more get 503. Never more than a quarter of the heap limit of Node.js, and never less than one body of MaxEvaluatedBodyBytes.',
    { min: 65_536 },
  ),
  ConnectTimeoutSeconds: integer(5, 'Time to connect to an upstream, TLS included.', { min: 1, max: 300 }),
  HeadersTimeoutSeconds: integer(600, 'Time until an upstream starts to answer.', { min: 1, max: 86_400 }),
  IdleTimeoutSeconds: integer(120, 'An upstream that sends no body bytes for this long is disconnected.', {
    min: 1,
    max: 86_400,
  }),
  EventStreamIdleSeconds: integer(900, 'The same for event streams (text/event-stream), which may be silent longer.', {
    min: 1,
    max: 86_400,
  }),
  MaxConnectionsPerOrigin: integer(256, 'Connections to one origin, at most half of them for one agent.', {
    min: 1,
    max: 65_535,
  }),
  MaxConnections: integer(4_096, 'Connections to all upstreams together.', { min: 1, max: 65_535 }),
  MaxWaiting: integer(1_024, 'Requests that wait for a connection to one origin; more get 503.', { min: 0 }),
  RetryIdempotent: boolean(
    true,
    'Send GET, HEAD, OPTIONS, PUT and DELETE once more when a connection that was used before breaks before the answer begins.',
  ),
  Client: choice(
    ['Builtin', 'Undici'],
    'Builtin',
    'HTTP/1.1 client for upstreams. Undici is for an upstream that the built-in client rejects.',
  ),
  Http2Hosts: list(
    'Hosts, such as api.example.com or *.example.com, that are called in HTTP/2 over TLS if they offer it. In tunnels to them the forward proxy offers it to clients.',
    hostPattern,
  ),
  AllowUpgrade: list(
    'Hosts, such as api.example.com or *.example.com, to which agents may open WebSockets. The gateway decides the handshake and does not read the messages. Others get 426.',
    hostPattern,
  ),
  UpgradeIdleSeconds: integer(300, 'A WebSocket on which nothing moves this long is closed.', { min: 1, max: 86_400 }),
  UpgradeMaxSeconds: integer(3_600, 'Longest life of a WebSocket.', { min: 1, max: 604_800 }),
  UpgradeMaxBytes: integer(1_073_741_824, 'Maximum of bytes of one WebSocket, both ways together; 0 is no limit.'),
  CaFile: optional('PEM file of certificate authorities trusted in addition to the built-in ones.'),
}
