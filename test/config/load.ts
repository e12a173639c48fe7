import t from 'tap'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'

type Env = Record<string, string>

const load = (text: string, env: Env = {}) => loadConfig({ file: { path: 'gateway.yaml', text }, env })

const problems = (text: string, env: Env = {}): string[] => {
  const loaded = load(text, env)
  return 'problems' in loaded ? loaded.problems.map(formatProblem) : []
}

const config = (text: string, env: Env = {}): Config => {
  const loaded = load(text, env)
  if ('problems' in loaded) throw new Error(loaded.problems.map(formatProblem).join('\n'))
  return loaded.config
}

t.test('without a file and variables every setting has its default', async t => {
  const loaded = loadConfig({ env: {} })
  t.match(loaded, { config: { System: { Server: { Http: { Host: '127.0.0.1', Port: 7080 } } } } })
  t.match(loaded, { config: { Security: { AgentAuth: { TokenIssuance: { Expiration: 900_000 } } } } })
})

t.test('an empty file, and one of comments alone, is all defaults', async t => {
  for (const text of ['', '# nothing\n', 'System:\n  # Server:\n']) t.strictSame(load(text), loadConfig({ env: {} }))
})

t.test('keys are taken in any letter case', async t => {
  const text = 'system:\n  SERVER:\n    Http: { port: 8080 }\nhumanintheloop: { threshold: 0.5 }\n'
  t.equal(config(text).System.Server.Http.Port, 8080)
  t.equal(config(text).HumanInTheLoop.Threshold, 0.5)
})

t.test('a variable overrides the file, in any letter case', async t => {
  const text = 'System: { Server: { Http: { Port: 8080 } } }'
  for (const name of ['SYSTEM__SERVER__HTTP__PORT', 'System__Server__Http__Port', 'system__server__http__port']) {
    t.equal(config(text, { [name]: '9090' }).System.Server.Http.Port, 9090, name)
  }
})

t.test('variables are read as the type of their setting', async t => {
  const read = config('', {
    SECURITY__AGENTAUTH__USECUSTOMHEADER: 'False',
    SECURITY__AGENTAUTH__TOKENISSUANCE__EXPIRATION: '01:00:00',
    POLICY__MODE: 'OBSERVE',
    HUMANINTHELOOP__THRESHOLD: '0.25',
    EGRESS__DENYHOSTS: 'a.example, *.b.example,',
    EGRESS__DENYCIDRS: '',
  })
  t.equal(read.Security.AgentAuth.UseCustomHeader, false)
  t.equal(read.Security.AgentAuth.TokenIssuance.Expiration, 3_600_000)
  t.equal(read.Policy.Mode, 'observe')
  t.equal(read.HumanInTheLoop.Threshold, 0.25)
  t.strictSame(read.Egress.DenyHosts, ['a.example', '*.b.example'])
  t.strictSame(read.Egress.DenyCidrs, [])
})

t.test('a variable may have _ where a key has a dash', async t => {
  t.equal(config('', { RISK__SIGNALS__METHOD_POST: '7' }).Risk.Signals['method-post'], 7)
  t.equal(config('', { 'RISK__SIGNALS__METHOD-POST': '8' }).Risk.Signals['method-post'], 8)
})

t.test('the configuration is frozen all the way down', async t => {
  const read = config('Policies: [{ name: a, rules: [] }]\nEgress: { DenyHosts: [a.example] }')
  const seen = [read, read.System.Server.Http, read.Egress.DenyHosts, read.Policies, read.Policies[0]]
  for (const value of seen) t.ok(Object.isFrozen(value))
})

t.test('anchors are followed', async t => {
  const read = config('Egress: { AllowHosts: &hosts [a.example], DenyHosts: *hosts }')
  t.strictSame(read.Egress.DenyHosts, ['a.example'])
})

t.test('every mistake is reported at once, with file, line and column or the name of the variable', async t => {
  const text = [
    'System:',
    '  Server:',
    '    Http:',
    '      Prot: 7080',
    '      Port: 70000',
    'Security: { AgentAuth: { UseCustomHeader: maybe } }',
    'Logging: loud',
  ].join('\n')
  t.strictSame(problems(text, { SYSTEM__SERVER__HTTP__PORT: '65536', PROXY__VAI: 'true' }), [
    'gateway.yaml:4:7: System:Server:Http:Prot: unknown key, did you mean Port?',
    'gateway.yaml:5:7: System:Server:Http:Port: must be <= 65535',
    'gateway.yaml:6:26: Security:AgentAuth:UseCustomHeader: must be true or false',
    'gateway.yaml:7:1: Logging: must be a map of keys and values',
    'env SYSTEM__SERVER__HTTP__PORT: must be <= 65535',
    'env PROXY__VAI: unknown key, did you mean Via?',
  ])
})

t.test('a setting of an earlier version is answered with what to do', async t => {
  const text =
    'trust: { quarantinewindowseconds: 60 }\nPolicy: { MaxJsonValues: 5000, MaxJsonValue: 1 }\nRisk: { WindowSeconds: 1 }\nProxy: { Redirects: Pass }'
  const env = { SYSTEM__CIRCUITBREAKER__WINDOWSECONDS: '60', SECURITY__AGENTAUTH__TOKENREQUESTS__QUEUELENGTH: '9' }
  t.strictSame(problems(text, env), [
    'gateway.yaml:1:10: Trust:quarantinewindowseconds: is no longer a setting: remove it; denials and losses within 300 seconds count',
    'gateway.yaml:2:11: Policy:MaxJsonValues: is no longer a setting: remove it; a body may have 100000 values',
    'gateway.yaml:2:32: Policy:MaxJsonValue: unknown key',
    'gateway.yaml:3:9: Risk:WindowSeconds: unknown key',
    'gateway.yaml:4:10: Proxy:Redirects: is no longer a setting: remove it; links of upstreams always lead through the gateway',
    'env SYSTEM__CIRCUITBREAKER__WINDOWSECONDS: is no longer a setting: remove it; failures within 60 seconds count',
    'env SECURITY__AGENTAUTH__TOKENREQUESTS__QUEUELENGTH: is no longer a setting: remove it; 32 secrets may wait to be hashed',
  ])
})

t.test('each kind of wrong value has its own message', async t => {
  const cases: [string, string][] = [
    ['System: { Server: { Http: { Port: 80.5 } } }', 'must be a whole number'],
    ['System: { Server: { Http: { Port: "80" } } }', 'must be a whole number'],
    ['System: { Server: { Http: { Port: -1 } } }', 'must be >= 0'],
    ['System: { Server: { Http: { Host: 127 } } }', 'must be text; put it in quotes'],
    ['System: { Server: { Http: { Host: "" } } }', 'must not be empty'],
    ['System: { Server: { Http: { Host: "a\\nb" } } }', 'must not contain control characters'],
    ['Security: { Bootstrap: { AgentId: admin } }', 'must be a UUID'],
    [`Security: { Bootstrap: { ClientSecret: ${'x'.repeat(73)} } }`, 'must be no longer than 72 bytes'],
    ['Security: { AgentAuth: { TokenIssuance: { Issuer: "\\ud800" } } }', 'must be well-formed Unicode'],
    ['System: { Server: { Http: { Host: } } }', 'must have a value; give one or remove the key'],
    ['System: { Server: { Http: { Host: "a b" } } }', 'must be an IP address or a host name'],
    ['HumanInTheLoop: { Threshold: .nan }', 'must be a number'],
    ['HumanInTheLoop: { Threshold: high }', 'must be a number'],
    ['HumanInTheLoop: { FourEyes: six }', 'must be one of self, owner'],
    ['Policy: { UnassignedEffect: false }', 'must be one of Deny, Hitl, Allow'],
    ['Security: { AgentAuth: { TokenIssuance: { Expiration: 900 } } }', 'must be a time span such as'],
    ['Security: { AgentAuth: { TokenIssuance: { Expiration: "2.00:00:00" } } }', 'must be <= 1.00:00:00'],
    ['Egress: { DenyHosts: a.example }', 'must be a list'],
    ['Egress: { DenyHosts: [a.example, 7] }', 'item 2 must be text'],
    ['Egress: { DenyHosts: [http://a.example] }', 'item 1 must be a host such as'],
    ['Policies: { name: a }', 'must be a list'],
    ['System: { Server: {}, server: {} }', 'System:Server: must be given once'],
    ['- System', 'must be a map of keys and values'],
    ['Egress: { DenyHosts: *unknown }', 'gateway.yaml:1:22: must be valid YAML: unknown alias'],
    ['System:\n\tServer: {}', 'must be valid YAML'],
    ['System: {}\nSystem: {}', 'must be valid YAML: duplicate key; put what is below it under the same key'],
    ['System: {}\n---\nSystem: {}', 'must be valid YAML: multiple docs'],
  ]
  for (const [text, expected] of cases) {
    const found = problems(text)
    t.equal(found.length, 1, text)
    t.ok(found[0]?.includes(expected), `${text}\n  ${found[0]}`)
    t.match(found[0], /^gateway\.yaml:\d+:\d+: /)
  }
})

t.test('each kind of wrong variable has its own message', async t => {
  const cases: [Env, string][] = [
    [{ SYSTEM__SERVER__HTTP__PORT: '' }, 'must be a whole number'],
    [{ SYSTEM__SERVER__HTTP__PORT: '0x50' }, 'must be a whole number'],
    [{ HUMANINTHELOOP__THRESHOLD: '1e-3' }, 'must be a number'],
    [{ PROXY__VIA: 'yes' }, 'must be true or false'],
    [{ PROXY__CAFILE: '' }, 'must not be empty'],
    [{ EGRESS__DENYCIDRS: '10.0.0.0/33' }, 'item 1 must be an IP address or a range'],
    [{ POLICIES__0__NAME: 'a' }, 'unknown key'],
    [{ POLICY__MODE__X: 'a' }, 'unknown key'],
    [{ SYSTEM__SERVER: 'a' }, 'must be a setting, not a section'],
    [{ SECURITY__CONSTRUCTOR: 'a' }, 'unknown key'],
    [{ PROXY__VIA: 'true', proxy__via: 'false' }, 'the same setting as PROXY__VIA'],
  ]
  for (const [env, expected] of cases) {
    const found = problems('', env)
    t.equal(found.length, 1, JSON.stringify(env))
    const [line = ''] = found
    t.ok(line.startsWith(`env ${Object.keys(env).at(-1)}: `) && line.includes(expected), line)
  }
})

t.test('variables that name no setting of ours are left alone', async t => {
  const env = {
    PATH: '/bin',
    SYSTEM: 'x',
    npm_config__x: '1',
    FOO__BAR: '1',
    __proto__x: '1',
    Security____proto____x: '1',
  }
  t.strictSame(load('', env), loadConfig({ env: {} }))
  t.equal(({} as Record<string, unknown>)['x'], undefined, 'no prototype was touched')
})

t.test('policies in the file are handed on as they are, and cannot come from a variable', async t => {
  t.strictSame(config('Policies: [{ name: a, Rules: [] }]').Policies, [{ name: 'a', Rules: [] }])
  t.strictSame(problems('', { POLICIES__X: '1', Policies__: '1' }), ['env POLICIES__X: unknown key'])
})

const noFiles = { UrlFromFile: undefined, KeyFromFile: undefined, SecretFromFile: undefined }

t.test('the entries of a list of maps are checked like everything else, and have defaults', async t => {
  const read = config(
    'HumanInTheLoop: { Webhooks: [{ url: https://a.example/, Events: [denied] }, { url: https://b.example/ }] }',
  )
  const absent = {
    Format: 'generic',
    Key: undefined,
    Secret: undefined,
    ...noFiles,
    Rules: [],
    Owners: [],
    AfterMinutes: 0,
  }
  t.strictSame(read.HumanInTheLoop.Webhooks, [
    { ...absent, Url: 'https://a.example/', Events: ['denied'] },
    { ...absent, Url: 'https://b.example/', Events: [] },
  ])
  t.ok(Object.isFrozen(read.HumanInTheLoop.Webhooks[0]))
  const text = [
    'HumanInTheLoop:',
    '  Webhooks:',
    '    - Url: nowhere',
    '      Evnts: [denied]',
    '    - Events: [lost]',
    '    - text',
  ].join('\n')
  const name = 'HumanInTheLoop:Webhooks'
  const [first, second, third, fourth] = problems(text)
  t.equal(first, `gateway.yaml:3:7: ${name}:0:Url: must be an http or https URL without user or fragment`)
  t.equal(second, `gateway.yaml:4:7: ${name}:0:Evnts: unknown key, did you mean Events?`)
  t.match(third, `gateway.yaml:5:7: ${name}:1:Events: item 1 must be one of pending, `)
  t.equal(fourth, `gateway.yaml:6:7: ${name}:2: must be a map of keys and values`)
  t.match(problems('HumanInTheLoop: { Webhooks: {} }'), [/must be a list$/])
  const env = { HUMANINTHELOOP__WEBHOOKS: 'https://a.example' }
  t.match(problems('', env), ['env HUMANINTHELOOP__WEBHOOKS: must be set in the configuration file'])
})

t.test('a problem never repeats what was given: it may be a secret', async t => {
  const canary = 'c4n4ry-s3cr3t'
  const texts = [
    `Security: { AgentAuth: { TokenIssuance: { Secret: [${canary}] } } }`,
    `Security: { AgentAuth: { TokenIssuance: { Secret: *${canary} } } }`,
    `Security: { AgentAuth: { TokenIssuance: { Secret: !${canary} x } } }`,
    `Security: { AgentAuth: { TokenIssuance: { Secret: "${canary}\\u0001" } } }`,
    `Security: { AgentAuth: { TokenIssuance: { Secret: "${canary} } } }`,
    `Security: { AgentAuth: { TokenIssuance: { PreviousSecrets: ["${canary}\\u0001"] } } }`,
    `Security: { Bootstrap: { ClientSecret: ${canary.repeat(10)} } }`,
    `Security: { Bootstrap: { ClientSecret: ok } }\n  ${canary}: [`,
  ]
  for (const text of texts) {
    const found = problems(text)
    t.not(found.length, 0, text)
    t.notOk(
      found.some(line => line.includes(canary)),
      found.join('\n'),
    )
  }
})
