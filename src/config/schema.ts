import { mapValues } from '../base/records.ts'
import { defaultRisk, riskSignals } from '../policy/risk/risk-signals.ts'
import { budgets } from './budgets.ts'
import { credentials, secrets } from './credentials.ts'
import { secretProblem } from './entropy.ts'
import {
  cidr,
  clientSecret,
  headerName,
  hostName,
  hostPattern,
  hours,
  httpUrl,
  issuerUrl,
  originUrl,
  provider,
  timeZone,
  uuid,
} from './formats.ts'
import { forwardProxy } from './forward-proxy.ts'
import { hitl } from './hitl.ts'
import { limits } from './limits.ts'
import { metering, prices } from './metering.ts'
import { proxy } from './proxy.ts'
import { recording } from './recording.ts'
import { server } from './server.ts'
import {
  boolean,
  choice,
  documents,
  integer,
  list,
  number,
  objects,
  optional,
  type SettingValues,
  secret,
  secretList,
  text,
  timespan,
} from './setting.ts'
import { fleet, storage } from './storage.ts'
import { tracing } from './tracing.ts'
import { upstreams } from './upstreams.ts'

/** Points of each risk signal; 0 switches it off, less than 0 speaks for the request. */
const signalPoints = mapValues(riskSignals, ({ points, meaning }) => integer(points, meaning, { min: -100, max: 100 }))

/**
 * Every setting of the gateway, once. The path of a key here is its name in gateway.yaml (any letter case) and,
 * joined by `__`, the name of the environment variable that overrides it (spec.md 5.6).
 */
export const schema = {
  System: {
    PublicUrl: optional(
      'Address at which people and agents reach this gateway, such as https://gateway.example.com: for links in webhooks and answers.',
      originUrl,
    ),
    Server: server,
    ...limits,
  },
  Security: {
    AgentAuth: {
      UseCustomHeader: boolean(true, 'Agents send their token in CustomHeaderName; false: in Authorization.'),
      CustomHeaderName: text(
        'Gateway-Authorization',
        'Header field that carries the agent token on /proxy.',
        headerName,
      ),
      FallbackToAuthorization: boolean(
        false,
        'Also accept the token in Authorization when the custom header is absent.',
      ),
      TokenIssuance: {
        Secret: secret(
          'Signing key of internal tokens, 32 bytes or more; generated into the data directory if absent.',
          secretProblem,
        ),
        PreviousSecrets: secretList(
          'Signing keys used before Secret: their tokens are still accepted, but new ones are signed with Secret. Requests sealed under keys derived from them can still be opened.',
          secretProblem,
        ),
        Issuer: text('agent-gateway', 'Issuer claim of internal tokens.'),
        Audience: text('agent-gateway', 'Audience claim of internal tokens.'),
        Expiration: timespan(900_000, 'Lifetime of internal tokens, hh:mm:ss.', { min: 1_000, max: 86_400_000 }),
      },
      TokenRequests: {
        PerAgentPerMinute: integer(
          5,
          'Failed POST /tokens per agent id and minute from one client address or IPv6 /64 network; more get 429.',
          { min: 1 },
        ),
        PerAddressPerMinute: integer(
          20,
          'Failed POST /tokens per client address, or IPv6 /64 network, and minute; more get 429.',
          {
            min: 1,
          },
        ),
        BcryptCost: integer(10, 'bcrypt cost of stored secrets.', { min: 4, max: 15 }),
      },
      ExternalIdentity: {
        Provider: optional('Jwt switches external identity on; absent is off.', provider),
        Jwt: {
          Authority: optional('Issuer address of the identity provider.', issuerUrl),
          Audience: optional('Audience expected in external tokens.'),
          RequireHttpsMetadata: boolean(true, 'Reject an Authority over plain http.'),
          ValidateIssuer: boolean(true, 'Check the issuer claim of external tokens.'),
          ValidateAudience: boolean(true, 'Check the audience claim of external tokens.'),
          AgentIdClaim: text('agent_id', 'Claim that names the agent an external token belongs to.'),
        },
        Console: {
          ClientId: optional(
            'Public client that the console is at the provider (authorization code with PKCE); with it, people sign in there.',
          ),
          Scope: text('openid', 'Scope that the console asks for.'),
        },
        Introspection: {
          Endpoint: optional(
            'Address that says what opaque tokens are (RFC 7662); absent: the one that the provider publishes.',
            httpUrl,
          ),
          ClientId: optional('Client that the gateway is at the provider; with it, opaque tokens are accepted.'),
          ClientSecret: secret('Secret of that client.'),
        },
      },
    },
    Bootstrap: {
      AgentId: optional('UUID of the first admin; generated if absent.', uuid),
      ClientSecret: secret(
        'Secret of the first admin, 16 to 72 bytes; generated into bootstrap.json if absent.',
        clientSecret,
      ),
    },
    Sealing: {
      Secret: secret(
        'Key that seals requests held for review, 32 bytes or more; derived from the signing key if absent.',
        secretProblem,
      ),
      PreviousSecrets: secretList(
        'Keys used before Secret, or after it: what they have sealed can still be opened.',
        secretProblem,
      ),
    },
  },
  Storage: storage,
  Fleet: fleet,
  Policy: {
    Directory: text(
      'policies',
      'Folder of policy files, *.yaml, relative to gateway.yaml; a change is in force once no file has changed for a second.',
    ),
    UnassignedEffect: choice(['Deny', 'Hitl', 'Allow'], 'Deny', 'Effect for an agent without a policy.'),
    AssignOnRegistration: optional('Policy of new agents, unless the call names one.'),
    Global: optional('Policy evaluated before every other; only its Deny and Hitl apply.'),
    Mode: choice(['enforce', 'observe'], 'enforce', 'observe logs what would be refused or held and lets it pass.'),
  },
  Policies: documents('Policies written in this file, same shape as the files in Policy:Directory.'),
  Proxy: proxy,
  ForwardProxy: forwardProxy,
  Hosts: objects(
    {
      Host: optional('Host name of the gateway under which clients call the upstream, without a port.', hostName),
      Upstream: optional('The upstream: scheme, host and port, such as https://api.example.com.', originUrl),
    },
    'Virtual hosts: a request to such a host is a request to the same path of its upstream. See docs/virtual-hosts.md.',
  ),
  Secrets: secrets,
  Credentials: credentials,
  Upstreams: upstreams,
  Metering: metering,
  Prices: prices,
  Budgets: budgets,
  Recording: recording,
  Egress: {
    DenyPrivateNetworks: boolean(false, 'Refuse private and loopback destinations.'),
    AllowHosts: list('Host patterns that may be called; empty allows all. example.com or *.example.com.', hostPattern),
    DenyHosts: list('Host patterns that are never called.', hostPattern),
    AllowCidrs: list('Address ranges allowed although DenyPrivateNetworks or the fixed list refuses them.', cidr),
    DenyCidrs: list('Address ranges that are never connected to.', cidr),
    SelfUrls: list('Further URLs under which this gateway is reached; calls to them are refused as loops.', httpUrl),
  },
  Risk: {
    Signals: signalPoints,
    SensitivePaths: list('Parts of a path that make it sensitive.', undefined, defaultRisk.sensitivePaths),
    BurstPerMinute: integer(
      defaultRisk.burstPerMinute,
      'Requests of one agent within a minute above which it is a burst.',
      { min: 1 },
    ),
    Hours: optional('When agents are expected to work, hh:mm-hh:mm; absent: always.', hours),
    TimeZone: text('UTC', 'IANA time zone of Hours.', timeZone),
  },
  Trust: {
    QuarantineBelow: number(0.2, 'An agent whose trust falls below this is quarantined; 0 switches it off.', {
      min: 0,
      max: 1,
    }),
    QuarantineDenials: integer(10, 'Denials within five minutes that quarantine an agent; 0 is off.', {
      max: 1_000,
    }),
  },
  HumanInTheLoop: hitl,
  Mcp: {
    Errors: choice(
      ['JsonRpc', 'Http'],
      'JsonRpc',
      'JsonRpc answers MCP clients with JSON-RPC errors and holds their requests in an event stream; Http treats them as other clients.',
    ),
    FilterTools: boolean(true, 'Take tools that the policy denies to an agent out of the answers to its tools/list.'),
  },
  Logging: {
    Level: choice(['debug', 'info', 'warn', 'error', 'silent'], 'info', 'Least severe level that is written.'),
    Access: boolean(true, 'Write one line for each proxied request.'),
    Values: boolean(false, 'The log line of a denied or held request shows the values that its rule saw, redacted.'),
  },
  Telemetry: {
    Metrics: {
      Public: boolean(false, 'GET /metrics needs no token. Make sure that only the scraper reaches it.'),
      Origins: list(
        'Hosts that get a label of their own, origin, in the metrics of upstreams; all others are "other". At most 50, of 43 lines each. example.com or *.example.com.',
        hostPattern,
      ),
    },
    Tracing: tracing,
  },
} as const

/** All settings with their values: `config.System.Server.Http.Port`. Frozen. */
export type Config = SettingValues<typeof schema>
