/**
 * The programs of docs/agents.md that need no packages, as they stand there: only the addresses are replaced. Those with
 * an SDK run in test/clients/documents.ts, and the commands in test/system/tour.ts.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runPython } from '../fixtures/python.ts'
import { withSystem } from '../fixtures/system.ts'

const run = promisify(execFile)
const page = readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8')
const gateway = await startGateway(t, { config: { Policies: [{ name: 'default', default: 'Allow' }] } })
const origin = await startOrigin(t)
const agent = await gateway.agent({ policyName: 'default' })

const made = await gateway.manage('POST', `/agents/${agent.id}/keys`, { name: 'examples' })
const agentKey = JSON.parse(made.text).key as string

const blocks = Array.from(page.matchAll(/^```(js|python)\n([\s\S]*?)^```/gm), ([, language = '', code = '']) => ({
  language,
  code: code.replaceAll('http://127.0.0.1:7080', gateway.url).replaceAll('https://api.example.com', origin.url),
})).filter(({ code }) => !/^import .* from '/m.test(code))

const { PATH, HOME } = process.env
const env = { PATH, HOME, AGENT_KEY: agentKey }

t.test('fetch calls through the gateway', async t => {
  const [block] = blocks.filter(({ language }) => language === 'js')
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', block!.code], { env })
  t.equal(stdout, 'hello from upstream\n')
})

if (withSystem) {
  t.test('Python requests calls through the gateway', async t => {
    const [block] = blocks.filter(({ language }) => language === 'python')
    t.equal(await runPython('requests', block!.code, { env }), 'hello from upstream\n')
  })
}
