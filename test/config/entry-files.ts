import { chmodSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { formatProblem } from '../../src/config/given.ts'
import { loadConfig } from '../../src/config/load.ts'
import { testdir } from '../fixtures/testdir.ts'

const folder = testdir(t, {})
writeFileSync(`${folder}/url`, 'https://hooks.example/key\r\n', { mode: 0o400 })
writeFileSync(`${folder}/bad`, 'not a URL\n', { mode: 0o400 })
writeFileSync(`${folder}/open`, 'https://hooks.example/key\n')
chmodSync(`${folder}/open`, 0o644)

const load = (hook: object) => {
  const text = JSON.stringify({ HumanInTheLoop: { Webhooks: [hook] } })
  const loaded = loadConfig({ file: { path: `${folder}/gateway.yaml`, text }, env: {} })
  return 'problems' in loaded ? loaded.problems.map(formatProblem).join('\n') : loaded.config.HumanInTheLoop.Webhooks[0]
}

t.test('a webhook has its URL, key and secret in files beside gateway.yaml', async t => {
  writeFileSync(`${folder}/secret`, 'kT7vQ2mZx9pLr4Wb\n', { mode: 0o440 })
  const hook = load({ UrlFromFile: 'url', SecretFromFile: `${folder}/secret`, KeyFromFile: 'secret', Format: 'ntfy' })
  t.match(hook, { Url: 'https://hooks.example/key', Secret: 'kT7vQ2mZx9pLr4Wb', Key: 'kT7vQ2mZx9pLr4Wb' })
})

t.test('what is in a file is checked as if it stood in gateway.yaml, and is not repeated', async t => {
  t.match(load({ UrlFromFile: 'bad' }), /gateway\.yaml:1:\d+: HumanInTheLoop:Webhooks:0:UrlFromFile: must be .*URL/)
  t.notMatch(load({ UrlFromFile: 'bad' }), 'not a URL')
  t.match(load({ UrlFromFile: 'open' }), /UrlFromFile: others can read this secret/)
  t.match(load({ UrlFromFile: 'none' }), /UrlFromFile: \S+\/none does not exist: mount it/)
  t.match(load({ Url: 'https://a.example/', UrlFromFile: 'url' }), /UrlFromFile: must not be set together with Url/)
})
