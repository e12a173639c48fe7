import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'
import { testdir } from '../fixtures/testdir.ts'

const secret = 'T2Fa8Q1xKq0wq0nZ3JrV7cD5sYbL9uPe'
const directory = testdir(t, {})
const name = 'SECURITY__AGENTAUTH__TOKENISSUANCE__SECRET'

function file(text: string, mode = 0o400, at = 'value'): string {
  const path = join(directory, at)
  writeFileSync(path, text, { mode: 0o600 })
  chmodSync(path, mode)
  return path
}

function load(env: Record<string, string>) {
  const loaded = loadConfig({ env })
  return 'problems' in loaded ? loaded.problems.map(formatProblem) : loaded.config
}

t.test('NAME__FILE has the value of a setting in a file, without the end of its last line', async t => {
  for (const end of ['', '\n', '\r\n']) {
    t.match(load({ [`${name}__FILE`]: file(secret + end, 0o440, `secret${end.length}`) }), {
      Security: { AgentAuth: { TokenIssuance: { Secret: secret } } },
    })
  }
  t.match(load({ system__server__http__port__file: file('8080\n', 0o644, 'port') }), {
    System: { Server: { Http: { Port: 8080 } } },
  })
  t.match(load({ EGRESS__DENYHOSTS__FILE: file('a.example\nb.example\n', 0o644, 'hosts') }), {
    Egress: { DenyHosts: ['a.example', 'b.example'] },
  })
})

t.test('a mounted secret is a link that is replaced, as in Kubernetes', async t => {
  const [first, second] = ['first', 'second'].map(version => join(directory, version))
  for (const [folder, text] of [
    [first, secret],
    [second, secret.toLowerCase()],
  ] as const) {
    mkdirSync(folder!)
    writeFileSync(join(folder!, 'secret'), text, { mode: 0o440 })
  }
  const data = join(directory, '..data')
  const read = () => load({ [`${name}__FILE`]: join(data, 'secret') })
  symlinkSync(first!, data)
  t.match(read(), { Security: { AgentAuth: { TokenIssuance: { Secret: secret } } } })
  unlinkSync(data)
  t.strictSame(read(), [`env ${name}__FILE: ${data}/secret does not exist: mount it, or correct its path`])
  symlinkSync(second!, data)
  t.match(read(), { Security: { AgentAuth: { TokenIssuance: { Secret: secret.toLowerCase() } } } })
})

t.test('a file that cannot be the value is a mistake that does not show what is in it', async t => {
  const pipe = join(directory, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const [path, why] of [
    [file(secret, 0o404, 'open'), 'others can read this secret: give the file the mode 0400 or 0440'],
    [directory, 'must name a regular file'],
    [pipe, 'must name a regular file'],
    [`${pipe}/x`, `${pipe}/x cannot be read (ENOTDIR)`],
    [file('x'.repeat(70_000), 0o400, 'long'), 'the file must have at most 65536 bytes'],
    [file('', 0o400, 'empty'), 'must not be empty'],
    [file('hush\nhush'.repeat(9), 0o400, 'lines'), 'must not contain control characters'],
  ] as const) {
    t.strictSame(load({ [`${name}__FILE`]: path }), [`env ${name}__FILE: ${why}`])
  }
})

t.test('a value and a file for one setting are a mistake', async t => {
  t.strictSame(load({ [name]: secret, [`${name}__FILE`]: file(secret, 0o400, 'both') }), [
    `env ${name}__FILE: must be set once: the same setting as ${name}`,
  ])
})

t.test('only settings have files', async t => {
  t.match(load({ SYSTEM__SERVER__FILE: '/dev/null' }), [/unknown key/])
  for (const [path] of settingsOf(schema)) t.not(path.at(-1)?.toUpperCase(), 'FILE', path.join(':'))
})
