import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { readCurl } from '../../src/cli/curl.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const policy = `
name: shop
rules:
  - name: small
    effect: Allow
    conditions:
      - { field: input.method, operator: eq, value: POST }
      - { field: input.body.amount, operator: between, value: [1, 100], quantifier: all }
`

const explain = async (...args: readonly string[]) => {
  const shell = fakeShell(['policy', 'explain', ...args])
  return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
}

t.test('a request from options is explained rule by rule', async t => {
  const file = `${testdir(t, { 'shop.yaml': policy })}/shop.yaml`
  const small = await explain(file, '--url', 'https://a.example/x', '--method', 'POST', '--data', '{"amount":5}')
  t.equal(small.code, 0)
  t.match(small.out, /^Allow\n/)
  t.match(small.out, 'matches  small (Allow, priority 0)')
  t.match(small.out, 'true       input.body.amount between [1,100] (all), was 5')
  const large = await explain(file, '--json', '--url', 'https://a.example/x', '--data', '{"amount":500}')
  t.match(JSON.parse(large.out), { result: { decision: 'Deny' }, rules: [{ rule: 'small', matches: false }] })
})

t.test('a request from a file, and the command line of curl, are explained', async t => {
  const request = { request: { method: 'POST', url: 'https://a.example/', body: { amount: 5 } } }
  const folder = testdir(t, {
    'gateway.yaml': '',
    policies: { 'shop.yaml': policy },
    'request.json': JSON.stringify(request),
    'other.json': '{}',
  })
  const config = ['--config', `${folder}/gateway.yaml`]
  t.match(await explain('shop', '--request', `${folder}/request.json`, ...config), { code: 0, out: /^Allow/ })
  const curl = ['curl', '-s', 'https://a.example/', '--json', '{"amount":500}']
  t.match(await explain('shop', ...config, '--', ...curl), { code: 0, out: /^Deny/ })
  t.match(await explain('shop', '--request', `${folder}/other.json`, ...config), { code: 1, err: /member request/ })
  t.match(await explain('shop', '--request', `${folder}/none.json`, ...config), { code: 1, err: /cannot be read/ })
  t.match(await explain('other', '--url', 'https://a.example/', ...config), { code: 1, err: /no policy other/ })
  t.match(await explain('shop', '--url', 'https://a.example/../x', ...config), { code: 1 })
  for (const args of [[], ['shop'], ['shop', '--', 'wget', 'x'], ['shop', '--', 'curl']])
    t.equal((await explain(...args, ...(args.includes('--') ? [] : config))).code, 2, args.join(' '))
})

const form = { 'Content-Type': ['application/x-www-form-urlencoded'] }

t.test('the command line of curl is read as curl reads it', async t => {
  const url = 'https://a.example/'
  const file = `${testdir(t, { body: 'a=1\nb=2\n' })}/body`
  const read = (line: string) => readCurl(line.split(' '))
  t.strictSame(read(url), { method: 'GET', url, headers: {} })
  t.strictSame(read('a.example/x'), { method: 'GET', url: 'http://a.example/x', headers: {} })
  t.strictSame(read(`-sSLXDELETE ${url}`), { method: 'DELETE', url, headers: {} })
  t.strictSame(read(`-I ${url} -o out -m 5`), { method: 'HEAD', url, headers: {} })
  t.strictSame(read(`-d a=1 -d b=2 ${url}`), { method: 'POST', url, headers: form, body: 'a=1&b=2' })
  t.strictSame(read(`-d@${file} ${url}`), { method: 'POST', url, headers: form, body: 'a=1b=2' })
  t.strictSame(read(`--data-binary @${file} ${url}`), { method: 'POST', url, headers: form, body: 'a=1\nb=2\n' })
  t.strictSame(read(`-G -d a=1 --data-urlencode b=ä ${url}?c=3`), {
    ...{ method: 'GET', url: `${url}?c=3&a=1&b=%C3%A4`, headers: {} },
  })
  t.strictSame(readCurl([url, '--json', '{"a":1}', '-X', 'PUT']), {
    ...{ method: 'PUT', url, headers: { 'Content-Type': ['application/json'] }, body: '{"a":1}' },
  })
  t.strictSame(readCurl(['-H', 'X-Team: red', '-H', 'X-Team: blue', '-u', 'me:secret', '-A', 'x', url]).headers, {
    ...{ 'X-Team': ['red', 'blue'], Authorization: ['Basic'], 'User-Agent': ['x'] },
  })
  t.equal(read('http://127.0.0.1:7080/proxy/https://a.example/x?y=1').url, 'https://a.example/x?y=1')
  for (const line of [`-F a=1 ${url}`, `-T file ${url}`, '-s', `${url} -H`, `-d @/none ${url}`, `-H wrong ${url}`])
    t.throws(() => read(line), { name: 'UsageError' }, line)
})
