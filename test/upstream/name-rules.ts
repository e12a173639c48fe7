import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { candidates, createNameRules } from '../../src/upstream/name-rules.ts'
import { testdir } from '../fixtures/testdir.ts'

function open(t: Test, texts: { readonly hosts?: string; readonly resolvConf?: string; readonly nsswitch?: string }) {
  const directory = testdir(t)
  const file = (name: keyof typeof texts): string => {
    const path = join(directory, name)
    if (texts[name] !== undefined) writeFileSync(path, texts[name])
    return path
  }
  const files = { hosts: file('hosts'), resolvConf: file('resolvConf'), nsswitch: file('nsswitch') }
  return { files, rules: createNameRules(files) }
}

t.test(
  'the hosts file: several names and addresses, comments, any letter case, and lines that say nothing',
  async t => {
    const hosts = '# x\n127.0.0.1 localhost Box # me\n::1\tlocalhost\n10.0.0.9\n\nnot-an-address a\n10.0.0.1 box'
    const { rules } = open(t, { hosts })
    t.strictSame(Object.fromEntries(rules().hosts), {
      localhost: ['127.0.0.1', '::1'],
      box: ['127.0.0.1', '10.0.0.1'],
    })
  },
)

t.test('search domains and ndots; the last of search and domain counts', async t => {
  const { rules } = open(t, {
    resolvConf: 'domain first.example\nsearch A.example. b.example ; no\noptions rotate ndots:2',
  })
  t.strictSame(candidates('api', rules()), ['api.a.example', 'api.b.example', 'api'])
  t.strictSame(candidates('api.team', rules()), ['api.team.a.example', 'api.team.b.example', 'api.team'])
  t.strictSame(candidates('api.team.org', rules()), [
    'api.team.org',
    'api.team.org.a.example',
    'api.team.org.b.example',
  ])
})

t.test('files that are missing say nothing', async t => {
  const { rules } = open(t, {})
  t.strictSame(rules(), { hosts: new Map(), search: [], ndots: 1, hasOtherSources: false })
  t.strictSame(candidates('api.team.org', rules()), ['api.team.org'])
})

t.test('other sources of names are noticed, actions between them are not names', async t => {
  for (const [line, other] of [
    ['hosts: files dns', false],
    ['hosts: files resolve [!UNAVAIL=return] myhostname dns', false],
    ['hosts:files mdns4_minimal [NOTFOUND=return] dns', true],
    ['hosts: files sss dns', true],
  ] as const) {
    t.equal(open(t, { nsswitch: `passwd: files ldap\n${line}\n` }).rules().hasOtherSources, other, line)
  }
})

t.test('a file that changed is read again, and one that did not is not', async t => {
  const { files, rules } = open(t, { hosts: '10.0.0.1 a\n' })
  const before = rules()
  t.equal(rules(), before)
  writeFileSync(files.hosts, '10.0.0.22 a\n')
  t.strictSame(rules().hosts.get('a'), ['10.0.0.22'])
})
