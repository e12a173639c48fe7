import t from 'tap'
import {
  cidr,
  clientSecret,
  credentialHeader,
  credentialPrefix,
  headerName,
  hostAndPort,
  hostName,
  hostPattern,
  httpUrl,
  listenHost,
  provider,
  uuid,
  variableName,
} from '../../src/config/formats.ts'
import type { TextFormat } from '../../src/config/setting.ts'

const formats: Record<string, { format: TextFormat; right: string[]; wrong: string[] }> = {
  headerName: {
    format: headerName,
    right: ['Gateway-Authorization', 'X-Agent', 'x'],
    wrong: ['a b', 'a:b', '', 'a_b', 'ä', 'Authorization', 'HOST', 'Transfer-Encoding', 'Cookie', 'HTTP2-Settings'],
  },
  credentialHeader: {
    format: credentialHeader,
    right: ['Authorization', 'X-Api-Key', 'Cookie', 'x'],
    wrong: [
      'a b',
      'a:b',
      '',
      'a_b',
      'Host',
      'Content-Length',
      'Content-Type',
      'connection',
      'Via',
      'Expect',
      'Upgrade',
    ],
  },
  credentialPrefix: {
    format: credentialPrefix,
    right: ['Bearer ', 'Token token=', 'x'],
    wrong: [' Bearer', 'schlüssel', 'a\tb'],
  },
  hostAndPort: {
    format: hostAndPort,
    right: ['a.example', '*.a.example', '.a.example:8443', 'localhost:1', '[::1]:65535', '[::1]'],
    wrong: ['a:0', 'a:65536', 'a:', 'https://a', '::1', 'a b', ':80'],
  },
  variableName: {
    format: variableName,
    right: ['KEY', '_key1'],
    wrong: ['1KEY', 'A-B', 'A=B', ''],
  },
  cidr: {
    format: cidr,
    right: ['10.0.0.0/8', '1.2.3.4', '0.0.0.0/0', '1.2.3.4/32', 'fd00::/8', '::1', '::/128'],
    wrong: ['10.0.0.0/33', '10.0.0/8', '10.0.0.0/', '10.0.0.0/8/8', 'fd00::/129', 'fe80::1%eth0', 'a', '1.2.3.4/-1'],
  },
  hostName: {
    format: hostName,
    right: ['a', 'a.example', 'gateway-1.internal', '127.0.0.1', '[::1]'],
    wrong: ['a.', '.a', 'a..b', '-a', 'a-', 'a:80', 'http://a', 'a/b', '[::1', '::1', '', '[1.2.3.4]', 'a b'],
  },
  hostPattern: {
    format: hostPattern,
    right: ['a.example', '*.a.example', '.a.example', '[::1]'],
    wrong: ['*', '*a.example', 'a.*.example', '**.a', 'a.example:443'],
  },
  listenHost: { format: listenHost, right: ['127.0.0.1', '::', '::1', 'localhost'], wrong: ['[::1]', 'a b', '1:2'] },
  httpUrl: {
    format: httpUrl,
    right: ['http://a', 'https://a.example:8443/realms/x'],
    wrong: ['a', 'ftp://a', 'http://u:p@a', 'https://u@a', 'http://', 'http://a#b'],
  },
  uuid: {
    format: uuid,
    right: ['00000000-0000-4000-8000-000000000001', 'ABCDEF00-0000-4000-8000-000000000001'],
    wrong: ['', '1', '{00000000-0000-4000-8000-000000000001}', '00000000-0000-4000-8000-00000000000g'],
  },
  clientSecret: {
    format: clientSecret,
    right: ['from the vault of the owner', 'kX3v9QmZt7Lr2WfB'],
    wrong: [
      'q'.repeat(73),
      'ä'.repeat(37),
      'a',
      'password1234',
      'a'.repeat(40),
      'changeme-password',
      'abababababababababab',
    ],
  },
  provider: { format: provider, right: ['Jwt', 'jwt'], wrong: ['oidc', 'Jwt '] },
}

for (const [name, { format, right, wrong }] of Object.entries(formats)) {
  t.test(`${name} takes what is right and says what is wrong`, async t => {
    for (const text of right) t.equal(format(text), undefined, text)
    for (const text of wrong) t.match(format(text), /^must /, text)
  })
}
