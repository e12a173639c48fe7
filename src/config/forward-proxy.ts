import { hostAndPort, listenHost, privateFile } from './formats.ts'
import { boolean, choice, integer, list, optional, text } from './setting.ts'

/** Settings under `ForwardProxy`: for clients that have the gateway as their HTTP proxy. */
export const forwardProxy = {
  Enabled: boolean(false, 'Serve a forward proxy, for clients with HTTP_PROXY, on a port of its own.'),
  Host: text(
    '127.0.0.1',
    'Address to listen on. With System:Server:Tls it is TLS there, unless the address is a loopback one.',
    listenHost,
  ),
  Port: integer(7081, 'TCP port to listen on; 0 takes any free one.', { max: 65_535 }),
  UnixPath: optional(
    'Unix socket to listen on as well, relative to gateway.yaml; permissions as System:Server:Unix:Mode.',
  ),
  Https: choice(
    ['Intercept', 'Tunnel'],
    'Intercept',
    'Intercept opens the TLS of tunnels, and decides each request in them; Tunnel decides host and port alone.',
  ),
  TunnelHosts: list(
    'Hosts whose TLS is not opened, since they or their clients allow only their own certificates: a host such as example.com, *.example.com or example.com:8443; 443 without a port. Other ports may carry any protocol.',
    hostAndPort,
  ),
  InterceptHosts: list('With Https: Tunnel, hosts that are opened all the same; as in TunnelHosts.', hostAndPort),
  Ca: {
    CertificateFile: optional(
      'PEM file of the authority whose certificates stand in for those of upstreams, relative to gateway.yaml: the authority first, then its chain and others to trust; absent: made in the data directory. SIGHUP reloads it.',
    ),
    KeyFile: optional(`PEM file of its private key, relative to gateway.yaml; ${privateFile}`),
  },
  MaxTunnelsPerAgent: integer(256, 'Open tunnels (CONNECT) of one agent, idle or not; more get 429.', {
    min: 1,
    max: 65_535,
  }),
  KeepAliveSeconds: integer(60, 'Connections in tunnels on which no request comes for this long are closed.', {
    min: 1,
    max: 3_600,
  }),
  WaitSeconds: integer(
    300,
    'Longest wait of a held call for its outcome, unless Prefer: wait says otherwise; its rule may say less. Then it gets 503, and the same request joins the review.',
    { max: 86_400 },
  ),
}
