import { writeFileSync } from 'node:fs'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const secret = 'T2Fa8Q1xKq0wq0nZ3JrV7cD5sYbL9uPe'
const yaml = `Logging: { Level: warn }
Security: { AgentAuth: { TokenIssuance: { PreviousSecrets: ['${secret}'], Expiration: '01:00:00' } } }
Policies: [{ name: open, default: Allow }]
HumanInTheLoop:
  Webhooks: [{ UrlFromFile: hook, Secret: '${secret}' }]
`
const folder = testdir(t, { 'gateway.yaml': yaml })
writeFileSync(`${folder}/hook`, 'https://hooks.example/a-key\n', { mode: 0o600 })
const config = `${folder}/gateway.yaml`

t.test('every setting is shown with its value and where that is from', async t => {
  const shell = fakeShell(['config', 'show', '--config', config], { SYSTEM__SERVER__HTTP__PORT: '8080' })
  t.equal(await runCommand(shell), 0)
  t.equal(shell.printed.length, [...settingsOf(schema)].length)
  const row = (name: string) => shell.printed.find(line => line.startsWith(`${name} `))?.split(/ {2,}/)
  t.strictSame(row('System:Server:Http:Port'), ['System:Server:Http:Port', 'env SYSTEM__SERVER__HTTP__PORT', '8080'])
  t.strictSame(row('System:Server:Http:Host'), ['System:Server:Http:Host', 'default', '127.0.0.1'])
  t.strictSame(row('Logging:Level'), ['Logging:Level', `${config}:1:12`, 'warn'])
  t.strictSame(row('System:PublicUrl'), ['System:PublicUrl', 'default', '-'])
})

t.test('no secret is shown, wherever it is from', async t => {
  const env = { STORAGE__POSTGRESQL__CONNECTIONSTRING: 'postgres://u:sesame@db/g', STORAGE__PROVIDER: 'PostgreSQL' }
  const shell = fakeShell(['config', 'show', '--json', '--config', config], {
    ...env,
    SECURITY__AGENTAUTH__TOKENISSUANCE__SECRET: secret,
  })
  t.equal(await runCommand(shell), 0)
  const text = shell.printed.join('\n')
  for (const hidden of [secret, 'sesame', 'a-key']) t.notMatch(text, hidden)
  const { settings } = JSON.parse(text)
  const shown = (wanted: string) => settings.find(({ name }: { name: string }) => name === wanted).value
  t.equal(shown('Storage:PostgreSQL:ConnectionString'), '***')
  t.strictSame(shown('Security:AgentAuth:TokenIssuance:PreviousSecrets'), ['***'])
  t.equal(shown('Security:AgentAuth:TokenIssuance:Expiration'), '01:00:00')
  t.match(shown('HumanInTheLoop:Webhooks'), [{ Url: '***', UrlFromFile: 'hook', Secret: '***' }])
  t.strictSame(shown('Policies'), [{ name: 'open', default: 'Allow' }])
})
