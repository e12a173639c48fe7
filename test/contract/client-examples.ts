/**
 * The examples of docs/agents.md that need no packages, as they stand there: only the addresses are replaced. Those with
 * an SDK run in test/clients/documents.ts.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runPython } from '../fixtures/python.ts'
import t from '../fixtures/tap.ts'

const run = promisify(execFile)
const page = readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8')
const gateway = await startGateway(t, { config: { Policies: [{ name: 'default', default: 'Allow' }] } })
const origin = await startOrigin(t)
const agent = await gateway.agent({ policyName: 'default' })

const made = await gateway.manage('POST', `/agents/${agent.id}/keys`, { name: 'examples' })
const agentKey = JSON.parse(made.text).key as string

const blocks = Array.from(page.matchAll(/^```(sh|js|python)\n([\s\S]*?)^```/gm), ([, language = '', code = '']) => ({
  language,
  code: code.replaceAll('http://127.0.0.1:7080', gateway.url).replaceAll('https://api.example.com', origin.url),
})).filter(({ code }) => !/^import .* from '/m.test(code))

const { PATH, HOME } = process.env
const env = {
  ...{ PATH, HOME, ADMIN: gateway.adminToken, TOKEN: agent.token, AGENT_KEY: agentKey },
  ...{ AGENT_ID: agent.id, AGENT_SECRET: agent.clientSecret },
}

const runners: Readonly<Record<string, (code: string) => readonly [string, readonly string[]]>> = {
  sh: code => ['bash', ['-euc', code]],
  js: code => [process.execPath, ['--input-type=module', '--eval', code]],
}

async function printed({ language, code }: (typeof blocks)[number]): Promise<string> {
  const [file, args] = runners[language]!(code)
  return (await run(file, [...args], { env })).stdout
}

t.test('the commands register an agent, get a token, make a key and call through the gateway', async t => {
  const [registered = '', token = '', made = '', called] = await Promise.all(
    blocks.filter(({ language }) => language === 'sh').map(printed),
  )
  t.match(JSON.parse(registered), { name: 'support' })
  t.match(JSON.parse(token), { accessToken: /^ey/, expiresAt: /^20/ })
  t.match(JSON.parse(made), { name: 'build server', key: /^agw_/ })
  t.equal(called, 'hello from upstream')
})

t.test('fetch calls through the gateway', async t => {
  const [block] = blocks.filter(({ language }) => language === 'js')
  t.equal(await printed(block!), 'hello from upstream\n')
})

t.test('Python requests calls through the gateway', async t => {
  const [block] = blocks.filter(({ language }) => language === 'python')
  t.equal(await runPython('requests', block!.code, { env }), 'hello from upstream\n')
})
