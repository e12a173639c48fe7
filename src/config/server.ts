import { hostName, listenHost, octalMode, originUrl, peerRange, privateFile } from './formats.ts'
import { boolean, integer, list, optional, text } from './setting.ts'

/** Settings under `System:Server`: where and how clients are listened to. */
export const server = {
  Http: {
    Host: text('127.0.0.1', 'Address to listen on.', listenHost),
    Port: integer(7080, 'TCP port to listen on; 0 takes any free one.', { max: 65_535 }),
    Enabled: boolean(true, 'false opens no TCP port: the gateway listens only on Unix:Path.'),
  },
  Unix: {
    Path: optional(
      'Unix socket to listen on as well, relative to gateway.yaml; the socket of a dead gateway is replaced.',
    ),
    Mode: text('0660', 'Permissions of the socket, octal: write permission allows connecting.', octalMode),
  },
  Tls: {
    CertificateFile: optional(
      'PEM file of the certificate and its chain, relative to gateway.yaml; switches TCP to TLS. SIGHUP reloads it.',
    ),
    KeyFile: optional(`PEM file of the private key, relative to gateway.yaml; ${privateFile}`),
  },
  Management: {
    Enabled: boolean(
      false,
      'true serves the API for people, the console and the documentation at an address of their own alone. Where agents call stay /proxy, virtual hosts, and the calls that agents make: POST /tokens, their own held requests, health.',
    ),
    Host: text('127.0.0.1', 'Address to listen on for people.', listenHost),
    Port: integer(7079, 'TCP port to listen on for people; 0 takes any free one.', { max: 65_535 }),
    UnixPath: optional(
      'Unix socket to listen on for people, relative to gateway.yaml, instead of Host and Port; permissions as Unix:Mode.',
    ),
    PublicUrl: optional(
      'Address at which people reach it in a browser, such as https://review.example.com: for links in webhooks and of agent-gateway console.',
      originUrl,
    ),
  },
  Threads: integer(1, 'Threads that serve requests; `auto` is one for each processor.', { min: 1, max: 64, auto: 0 }),
  AllowedHosts: list('Host names that management calls may be addressed to; empty allows any.', hostName),
  TrustedProxies: list(
    'Addresses or CIDRs, or unix for the unix socket, whose X-Forwarded-For is trusted for input.clientIp.',
    peerRange,
  ),
  MaxConnections: integer(10_000, 'Open client connections; more are refused.', { min: 1 }),
  MaxConnectionsPerAddress: integer(
    1_000,
    'Open connections of one client address, IPv6 /64 network, or the unix socket; 0 is no limit. TrustedProxies are not counted.',
  ),
  HeadersTimeoutSeconds: integer(10, 'Time for a request head to arrive.', { min: 1, max: 3_600 }),
  IdleTimeoutSeconds: integer(
    60,
    'A client that neither sends nor reads body bytes for this long is disconnected; also the time limit for the body of a management call.',
    {
      min: 1,
      max: 86_400,
    },
  ),
  MinBodyBytesPerSecond: integer(
    100,
    'Slowest pace of a proxied request body, measured over 30 seconds; a slower one gets 408. 0 is no limit.',
    { max: 1_000_000 },
  ),
  KeepAliveSeconds: integer(
    75,
    'Idle client connections are closed after this; a client that was busy for longer may fail with its next request.',
    { min: 1, max: 3_600 },
  ),
  StopDelaySeconds: integer(
    0,
    'On SIGTERM, the gateway still serves for so long, and /health/proxy is 503: load balancers notice.',
    { max: 300 },
  ),
  DrainSeconds: integer(30, 'On SIGTERM, time for requests in flight to finish.', { max: 3_600 }),
}
