/** Clients of Node.js that know nothing but the address of their proxy. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ProxyAgent, request } from 'undici'
import { authorityOf, secureSetup, startForward } from '../fixtures/forward.ts'
import { startOrigin, startSecureOrigin } from '../fixtures/origin.ts'

const run = promisify(execFile)
const secure = await startSecureOrigin(t)
const plain = await startOrigin(t)
const gateway = await startForward(t, secureSetup)
const rule = { name: 'no', effect: 'Deny', conditions: [{ field: 'input.path', operator: 'eq', value: '/denied' }] }
await gateway.policy({ name: 'most', default: 'Allow', rules: [rule] })
const { token } = await gateway.agent({ policyName: 'most' })
const proxy = `http://agent:${token}@127.0.0.1:${gateway.forwardPort}`
const bundle = join(gateway.directory, 'ca.pem')
writeFileSync(bundle, authorityOf(gateway))

/** Runs a program of Node.js with the variables that users set. */
async function program(script: string, url: string): Promise<string> {
  const env = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NODE_USE_ENV_PROXY: '1', NODE_EXTRA_CA_CERTS: bundle }
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script, url], { env })
  return stdout
}

type Call = (url: string) => Promise<string>

const clients: Readonly<Record<string, Call>> = {
  fetch: url => program('const a = await fetch(process.argv[1]); console.log(a.status, await a.text())', url),
  'node:http and node:https': url =>
    program(
      `const { get } = await import(process.argv[1].startsWith('https:') ? 'node:https' : 'node:http')
       get(process.argv[1], a => a.setEncoding('utf8').toArray().then(all => console.log(a.statusCode, all.join(''))))`,
      url,
    ),
  undici: async url => {
    const dispatcher = new ProxyAgent({ uri: proxy, requestTls: { ca: authorityOf(gateway) } })
    const { statusCode, body } = await request(url, { dispatcher })
    const text = `${statusCode} ${await body.text()}`
    await dispatcher.close()
    return text
  },
}

for (const [name, call] of Object.entries(clients)) {
  for (const origin of [plain, secure]) {
    t.test(`${name} calls ${origin === secure ? 'https' : 'http'} unchanged, and shows why it was refused`, async t => {
      origin.seen.length = 0
      t.match(await call(`${origin.url}/things`), /^200 hello from upstream/)
      t.match(origin.seen, [{ target: '/things' }])
      t.notMatch(JSON.stringify(origin.seen), token)
      t.match(await call(`${origin.url}/denied`), /^403 .*"code":"policy_denied"/s)
      t.equal(origin.seen.length, 1)
    })
  }
}
