/** What upstreams say they want, and how little comes of it. Threat T92. */
import t from 'tap'
import {
  foreignScope,
  grantableScopes,
  lackingScopes,
  wantedScopes,
  withGrantedScopes,
  withScopes,
} from '../../src/credentials/scopes.ts'
import { clientSetting } from '../fixtures/token-server.ts'

const wantedIn = (...challenges: string[]) => wantedScopes(challenges.flatMap(text => ['WWW-Authenticate', text]))

t.test('scopes are read from the challenge that says insufficient_scope, and from no other', async t => {
  const known: readonly (readonly [string, readonly string[]])[] = [
    ['Bearer realm="x", error="insufficient_scope", scope="write admin:all"', ['write', 'admin:all']],
    ['bearer ERROR=insufficient_scope,scope=write', ['write']],
    ['Basic realm="a, Bearer b", Bearer error="insufficient_scope", scope="write"', ['write']],
    ['Bearer scope="write", error = "insufficient_scope"', ['write']],
    ['Bearer error="insufficient_scope", scope="a\\"b ok"', ['ok']],
    ['Bearer error="insufficient_scope", scope="write", scope="other"', ['write']],
    ['Bearer error="invalid_token", scope="write"', []],
    ['Bearer error="insufficient_scope"', []],
    ['Bearer error="insufficient_scope", scope="  "', []],
    ['Basic error="insufficient_scope", scope="write"', []],
    ['Digest realm="Bearer error=insufficient_scope, scope=write"', []],
    ['Bearer error="insufficient_scope", scope="write', []],
    ['Bearer dG9rZW4/+==, error="insufficient_scope", scope="write"', []],
    ['', []],
  ]
  for (const [text, scopes] of known) t.strictSame(wantedIn(text), scopes, text)
  t.strictSame(wantedIn('Basic realm="x"', 'Bearer error="insufficient_scope", scope="write"'), ['write'])
  t.strictSame(wantedScopes(['Other', 'Bearer error="insufficient_scope", scope="write"']), [])
})

t.test('of many and of odd scopes few are read, in a time that grows with the length alone', async t => {
  const scopes = (text: string) => wantedIn(`Bearer error="insufficient_scope", scope="${text}"`)
  t.equal(scopes(Array.from({ length: 100 }, (_, i) => `s${i}`).join(' ')).length, 8)
  t.strictSame(scopes(`\u202e \u001b[2J ${'x'.repeat(201)} a\u00e9 ok ok`), ['ok'])
  t.strictSame(scopes('x'.repeat(10_000)), [])
  const late = 'error="insufficient_scope", scope="write"'
  t.strictSame(wantedIn(`Bearer realm="${'x'.repeat(4_000)}", ${late}`), ['write'])
  t.strictSame(wantedIn(`Bearer realm="${'x'.repeat(5_000)}", ${late}`), [])
  for (const part of ['a="', '\\', ' ,', 'a=', '"\\"']) t.strictSame(wantedIn(`Bearer ${part.repeat(50_000)}`), [])
})

const setting = clientSetting({ Type: 'Connect', Scope: 'read offline_access', StepUpScope: 'write share' })
const account = { by: 'anna', at: 0, scope: null, login: null }

t.test('people are asked for what the settings name alone, whoever wants more', async t => {
  t.equal(withScopes(setting), setting)
  t.equal(withScopes(setting, ['write', 'admin']).Scope, 'read offline_access write')
  t.equal(foreignScope(setting, ['write', 'read']), undefined)
  t.equal(foreignScope(setting, ['write', 'admin', 'root']), 'admin')
})

t.test('what an account lacks is what it was not granted, as far as its server says', async t => {
  t.strictSame(grantableScopes(setting, undefined), ['write', 'share'])
  t.strictSame(grantableScopes(setting, { ...account, more: ['write'] }), ['share'])
  t.strictSame(grantableScopes(setting, { ...account, scope: 'offline_access write' }), ['read', 'share'])
  t.strictSame(grantableScopes({ ...setting, Type: 'RefreshToken' }, undefined), [], 'nobody can add to it')
  t.strictSame(lackingScopes(setting, ['read', 'write', 'admin'], ['write']), ['write', 'admin'])
  t.strictSame(lackingScopes(setting, ['read', 'write', 'admin']), ['admin'])
})

t.test('a renewal asks for what was granted', async t => {
  const scopeOf = (more: object) => withGrantedScopes(setting, { ...account, ...more }).Scope
  t.equal(withGrantedScopes(setting, undefined).Scope, 'read offline_access')
  t.equal(scopeOf({ more: ['write', 'gone'] }), 'read offline_access write')
  t.equal(scopeOf({ more: ['write'], scope: 'write' }), 'offline_access write', 'read was not granted')
  t.equal(withGrantedScopes({ ...setting, Scope: 'read' }, { ...account, scope: '' }).Scope, undefined)
})
