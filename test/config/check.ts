import t from 'tap'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'

const problems = (text: string, env: Record<string, string> = {}): string[] => {
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text }, env })
  return 'problems' in loaded ? loaded.problems.map(formatProblem) : []
}

const identity = (jwt: string) => `Security: { AgentAuth: { ExternalIdentity: { Provider: Jwt, Jwt: ${jwt} } } }`
const prefix = 'Security:AgentAuth:ExternalIdentity:Jwt'

t.test('an identity provider needs an authority and an audience', async t => {
  t.strictSame(problems(identity('{}')), [
    `gateway.yaml:1:46: ${prefix}:Authority: must be set when Provider is Jwt`,
    `gateway.yaml:1:46: ${prefix}:Audience: must be set unless ValidateAudience is false`,
  ])
  t.strictSame(problems(identity('{ Authority: https://idp.example, Audience: gateway }')), [])
  t.strictSame(problems(identity('{ Authority: https://idp.example, ValidateAudience: false }')), [])
})

t.test('an authority is the address of an issuer', async t => {
  for (const [authority, message] of [
    ['ftp://idp.example', 'must be an http or https URL without user or fragment'],
    ['https://user:pw@idp.example', 'must be an http or https URL without user or fragment'],
    ['https://idp.example/?a=b', 'must be a URL without query'],
  ]) {
    t.match(
      problems(identity(`{ Authority: "${authority}", Audience: gateway }`)),
      [`Authority: ${message}`],
      `${authority}`,
    )
  }
  const saml = 'Security: { AgentAuth: { ExternalIdentity: { Provider: Saml } } }'
  t.match(problems(saml), [/Provider: must be Jwt/])
})

t.test('an authority over plain http needs RequireHttpsMetadata: false', async t => {
  const http = 'Authority: http://idp.example, Audience: gateway'
  t.match(problems(identity(`{ ${http} }`)), [/Authority: must be an https URL unless RequireHttpsMetadata is false$/])
  t.strictSame(problems(identity(`{ ${http}, RequireHttpsMetadata: false }`)), [])
})

t.test('hours of work are a window that is not empty', async t => {
  const hours = (window: string) => problems(`Risk: { Hours: "${window}" }`)
  t.match(hours('08:00-08:00'), [/Risk:Hours: must be like 08:00-18:00/])
  t.strictSame(hours('22:00-06:00'), [])
})

t.test('a rule over several settings is not asked while one of them is wrong by itself', async t => {
  t.strictSame(problems(identity('{ Authority: nowhere, Audience: gateway }')), [
    `gateway.yaml:1:68: ${prefix}:Authority: must be an http or https URL without user or fragment`,
  ])
})

t.test('a mistake made by a variable names the variable', async t => {
  const env = { SECURITY__AGENTAUTH__EXTERNALIDENTITY__PROVIDER: 'jwt' }
  t.strictSame(problems('', env).length, 2)
  for (const line of problems('', env)) t.ok(line.startsWith(`env ${Object.keys(env)[0]}: ${prefix}:`), line)
})

t.test('the lease of a replay is longer than a replay may take to be answered', async t => {
  t.match(problems('HumanInTheLoop: { LeaseSeconds: 605 }'), [
    /^gateway.yaml:1:19: .*LeaseSeconds: must be longer than/,
  ])
  t.match(problems('Proxy: { HeadersTimeoutSeconds: 655 }'), [
    /^gateway.yaml:1:10: .*LeaseSeconds: must be longer than/,
  ])
  t.strictSame(problems('HumanInTheLoop: { LeaseSeconds: 606 }'), [])
})

t.test('MaxHeldBytes has room for the longest body that is held', async t => {
  t.strictSame(problems('Proxy: { MaxHeldBytes: 1000000 }'), [
    'gateway.yaml:1:10: Proxy:MaxHeldBytes: must be at least 8454144, so that one body of MaxEvaluatedBodyBytes or HumanInTheLoop:MaxStoredBodyBytes can be held',
  ])
  t.match(problems('{ Proxy: { MaxHeldBytes: 9000000 }, HumanInTheLoop: { MaxStoredBodyBytes: 9000000 } }'), [
    /must be at least 9065536,/,
  ])
  t.match(problems('Proxy: { MaxEvaluatedBodyBytes: 100000000000, MaxHeldBytes: 200000000000 }'), [
    /^gateway.yaml:1:\d+: Proxy:MaxHeldBytes: a quarter of the heap limit of Node.js, \d+ bytes, must be at least 100000065536,/,
  ])
  const small = 'HumanInTheLoop: { MaxStoredBodyBytes: 4096 }'
  t.strictSame(problems(`{ Proxy: { MaxHeldBytes: 1000000, MaxEvaluatedBodyBytes: 900000 }, ${small} }`), [])
})

t.test('a webhook needs an address', async t => {
  t.strictSame(problems('HumanInTheLoop: { Webhooks: [{ Url: "https://a.example/" }, {}, { Format: slack }] }'), [
    'gateway.yaml:1:19: HumanInTheLoop:Webhooks: entry 1, entry 2: Url or UrlFromFile must be set',
  ])
})

t.test('a webhook of a service needs what that service asks for', async t => {
  const hooks = [
    '{ Url: "https://a.example/", Format: pagerDuty }',
    '{ Url: "https://b.example/", Format: ntfy }',
    '{ Url: "https://c.example/", Key: k }',
    '{ Url: "https://d.example/topic", Format: ntfy, Key: k }',
  ]
  t.strictSame(problems(`HumanInTheLoop: { Webhooks: [${hooks.join(', ')}] }`), [
    'gateway.yaml:1:19: HumanInTheLoop:Webhooks: entry 0: Key must be set: the integration key of PagerDuty; ' +
      'entry 1: Url must end with the topic, as in https://ntfy.sh/my-topic; entry 2: Key is not used by the format generic',
  ])
})

t.test('e-mail needs a sender and receivers, and a name with its password', async t => {
  const problem = (rest: string) =>
    problems(
      `System: { PublicUrl: "https://gateway.example" }\nHumanInTheLoop: { Email: { Host: mail.example, ${rest} } }`,
    )[0]
  t.match(problem('From: a@example.com'), 'From and To must be set')
  t.match(problem('From: a@example.com, To: [b@example.com], User: u'), 'User and Password belong together')
  t.match(problem('From: "Gate <a@example.com>", To: [b@example.com]'), 'must be an address such as')
  t.equal(problem('From: a@example.com, To: [b@example.com], User: u, Password: p'), undefined)
})

t.test('a secret to sign or seal with is strong, and the problem says how to make one', async t => {
  const advice = 'Make one with: openssl rand -base64 48'
  t.strictSame(problems('Security: { Sealing: { Secret: short } }'), [
    `gateway.yaml:1:24: Security:Sealing:Secret: must be 32 bytes or more. ${advice}`,
  ])
  const issuance = 'SECURITY__AGENTAUTH__TOKENISSUANCE__'
  const strong = 'Xq8v0Zk3m1Lr7Tt2Yw9Bn4Hc6Jd5Fg0Ps8Va1Ue3'
  t.strictSame(problems('', { [`${issuance}SECRET`]: 'CHANGEME'.repeat(5) }), [
    `env ${issuance}SECRET: must not be a sample from documentation. ${advice}`,
  ])
  t.strictSame(problems('', { [`${issuance}PREVIOUSSECRETS`]: `${strong},short` }), [
    `env ${issuance}PREVIOUSSECRETS: item 2 must be 32 bytes or more. ${advice}`,
  ])
  t.strictSame(problems('', { [`${issuance}SECRET`]: strong }), [])
})

t.test('the secret of the first admin needs its id', async t => {
  t.match(problems('Security: { Bootstrap: { ClientSecret: Vq7rT2mX9kLp4sWz } }'), [
    /AgentId: must be set together with ClientSecret$/,
  ])
})

t.test('secrets and credentials have names of their own, one source, and what their type needs', async t => {
  const of = (Secrets: string, Credentials = '', Upstreams = '') =>
    problems(`Secrets: [${Secrets}]\nCredentials: [${Credentials}]\nUpstreams: [${Upstreams}]`)
  const key = '{ Name: key, FromEnv: KEY }'
  t.strictSame(of(key, '{ Name: a, Secret: key }', '{ Host: h.example, Credential: a }'), [])
  t.match(of('{ FromEnv: KEY }'), [/Secrets: entry 0: Name must be set/])
  t.match(of(`${key}, ${key}`), [/entry 1: Name must differ/])
  t.match(of('{ Name: key, FromEnv: KEY, FromFile: f }'), [
    /one of FromEnv, FromFile, FromCommand and FromUrl must be set/,
  ])
  t.match(of('{ Name: key, FromCommand: [aws, login] }'), [/FromCommand must begin with an absolute path/])
  t.match(of(key, '{ Name: a, Secret: other }'), [/Secret must name an entry of Secrets/])
  const client = '{ Name: a, Secret: key, Type: ClientCredentials'
  t.match(of(key, `${client} }`), [/ClientId must be set for ClientCredentials/])
  t.match(of(key, `${client}, ClientId: c }`), [/Issuer or TokenUrl must be set for ClientCredentials/])
  t.match(of(key, '{ Name: a, Secret: key, Type: Aws, Services: [s3] }'), [/Regions must be set for Aws/])
  t.match(of(key, '{ Name: a, Secret: key, TokenUrl: "http://a.example" }'), [/must be an https URL/])
  t.match(of(key, '', '{ Host: h.example, Credential: a }'), [/Credential must name an entry of Credentials/])
  const vault = (more: string) => `{ Name: v, Secret: key, Type: Vault, TokenUrl: "https://v.example/login", ${more} }`
  t.strictSame(of(key, vault('Subject: r')), [])
  t.match(of(key, vault('')), [/ClientId \(of AppRole\) or Subject/])
  t.match(of(key, vault('Subject: r, ClientId: c')), [/ClientId \(of AppRole\) or Subject/])
  const stored = (more: string) => `${key}, { Name: db, FromUrl: "https://v.example/db", ${more} }`
  t.strictSame(of(stored('Credential: v'), vault('Subject: r')), [])
  t.strictSame(of(stored('Body: x')), [])
  t.match(of(stored('Credential: other')), [/entry 1: Credential must name an entry of Credentials/])
  t.match(of('{ Name: key, FromUrl: "https://v.example/db", Credential: v }', vault('Subject: r')), [
    /its Credential needs this secret itself/,
  ])
  const granted =
    '{ Name: a, Type: RefreshToken, Secret: key, ClientId: c, TokenUrl: "https://a.example", RefreshToken: db }'
  t.match(of(stored('Credential: a'), granted), [/entry 1: its Credential needs this secret itself/])
  t.strictSame(
    of(`${key}, { Name: db, FromEnv: DB }, { Name: c, FromUrl: "https://a.example", Credential: a }`, granted),
    [],
  )
  t.match(of('{ Name: key, FromEnv: KEY, Credential: v }', vault('Subject: r')), [/are for FromUrl alone/])
  const token = '{ Name: a, Secret: key, Type: GitHubApp, ClientId: "1", Subject: "2" }'
  t.match(of(key, token, '{ Host: "*.github.io", Credential: a }'), [/Host must be one name/])
  t.strictSame(of(key, token, '{ Host: me.github.io, Credential: a }'), [])
  t.match(of(key, token, '{ Host: h.example, Credential: a, Header: X-Key, Query: key }'), [/must not both be set/])
})

t.test('a credential of an upstream names its host and one source, and not the field of the agent token', async t => {
  const entry = (text: string) => problems(`Upstreams: [${text}]`)
  t.strictSame(entry('{ Host: a.example, ValueFromEnv: KEY }'), [])
  t.strictSame(entry('{ Host: a.example, ValueFromEnv: KEY }, { ValueFromEnv: KEY }, { Host: b.example }'), [
    'gateway.yaml:1:1: Upstreams: entry 1: Host must be set; entry 2: one of Credential, ValueFromEnv and ValueFromFile must be set',
  ])
  t.match(entry('{ Host: a.example, ValueFromEnv: KEY, ValueFromFile: key }'), [/one of Credential, ValueFromEnv and/])
  t.match(entry('{ Host: a.example, ValueFromEnv: KEY, Header: gateway-authorization }'), [
    /Header must not be CustomHeaderName$/,
  ])
})

t.test('a virtual host has a name of its own and an upstream', async t => {
  const entry = (host: string, upstream = 'https://api.example.com') => `{ Host: ${host}, Upstream: "${upstream}" }`
  const hosts = (...entries: string[]) => `Hosts: [${entries.join(', ')}]`
  t.strictSame(problems(hosts(entry('a.example'), entry('"[::1]"', 'http://127.0.0.1:8080'))), [])
  t.match(problems('Hosts: [{ Host: a.example }]'), [/Hosts: entry 0: Host and Upstream must be set/])
  t.match(problems(hosts(entry('a.example'), entry('A.example'))), [/entry 1: Host must not be that of another entry/])
  const allowed = 'System: { Server: { AllowedHosts: [a.example] } }'
  t.match(problems(`${allowed}\n${hosts(entry('a.example'))}`), [/Host must not be in AllowedHosts/])
  const publicUrl = 'System: { PublicUrl: "https://a.example:8443" }'
  t.match(problems(`${publicUrl}\n${hosts(entry('a.example'))}`), [/Host must not be that of System:PublicUrl/])
  for (const upstream of ['https://a.example/v1', 'https://a.example/?a', 'ftp://a', 'https://a@b', 'https://0x7f.1']) {
    t.match(problems(hosts(entry('b.example', upstream))), [/must be an http or https URL of a host alone/], upstream)
  }
  t.match(problems(hosts(entry('"a.example:80"'))), [/must be a host name without scheme, port or path/])
})

t.test(
  'the authority of the forward proxy has both files, and is configured where several gateways need one',
  async t => {
    const forward = (more: string, storage = '') => `ForwardProxy: { Enabled: true${more} }\n${storage}`
    const both = ', Ca: { CertificateFile: ca.pem, KeyFile: key.pem }'
    t.strictSame(problems(forward('')), [])
    t.strictSame(problems(forward(both)), [])
    t.match(problems(forward(', Ca: { CertificateFile: ca.pem }')), [
      /CertificateFile and KeyFile must both be set, or neither/,
    ])
    const database = 'Storage: { Provider: PostgreSQL, PostgreSQL: { ConnectionString: "postgres://a@b/c" } }'
    const env = { SECURITY__AGENTAUTH__TOKENISSUANCE__SECRET: 'T2Fa8Q1xKq0wq0nZ3JrV7cD5sYbL9uPe' }
    t.match(problems(forward('', database), env), [
      /Ca:CertificateFile: must be set when Storage:Provider is PostgreSQL/,
    ])
    t.strictSame(problems(forward(both, database), env), [])
    t.strictSame(problems(database, env), [])
  },
)

t.test('introspection needs a client with its secret, an identity provider, and https', async t => {
  const asked = (more: string, jwt = '') => `Security: { AgentAuth: { ExternalIdentity: { Provider: Jwt,
    Jwt: { Authority: https://idp.example, Audience: gateway${jwt} }, Introspection: { ${more} } } } }`
  t.strictSame(problems(asked('ClientId: a, ClientSecret: b')), [])
  t.match(problems(asked('ClientId: a')), [/ClientId and ClientSecret must both be set, or neither/])
  const alone = 'Security: { AgentAuth: { ExternalIdentity: { Introspection: { ClientId: a, ClientSecret: b } } } }'
  t.match(problems(alone), [/must not be set unless Provider is Jwt/])
  t.match(problems(asked('Endpoint: http://idp.example')), [/Endpoint: must be an https URL unless/])
  t.strictSame(problems(asked('Endpoint: http://idp.example', ', RequireHttpsMetadata: false')), [])
})

t.test('a host is not both left closed and opened, and hosts are opened by name only where others are not', async t => {
  const hosts = (more: string) => problems(`ForwardProxy: { Https: Tunnel, ${more} }`)
  t.match(hosts('TunnelHosts: [a.test], InterceptHosts: ["A.test:443"]'), [
    /ForwardProxy:TunnelHosts: a\.test must not be in InterceptHosts as well$/,
  ])
  t.strictSame(hosts('TunnelHosts: ["a.test:8443"], InterceptHosts: [a.test]'), [])
  t.match(problems('ForwardProxy: { InterceptHosts: [a.test] }'), [
    /ForwardProxy:InterceptHosts: must not be set unless Https is Tunnel$/,
  ])
})
