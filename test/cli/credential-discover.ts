/** The command `credential discover`, against an MCP server of the tests. Threat T89. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { loopbackCaFile, startLoopbackOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

let issuers: () => string[] = () => [server.url, 'https://other.example']
let registered: unknown
const server = await startLoopbackOrigin(t, async (req, res) => {
  const endpoints = {
    issuer: server.url,
    token_endpoint: `${server.url}/token`,
    registration_endpoint: `${server.url}/register`,
  }
  const json = (body: object, status = 200) => {
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(JSON.stringify(body))
  }
  if (req.url === '/register') {
    registered = JSON.parse(await text(req))
    json({ client_id: 'client-1' }, 201)
  } else if (req.url === '/.well-known/oauth-authorization-server') json(endpoints)
  else if (req.url !== '/.well-known/oauth-protected-resource/mcp') json({}, 404)
  else json({ resource: `${server.url}/mcp`, authorization_servers: issuers(), scopes_supported: ['tools.read'] })
})
const file = join(testdir(t), 'gateway.yaml')
writeFileSync(file, JSON.stringify({ Proxy: { CaFile: loopbackCaFile } }))

async function run(...args: string[]) {
  const shell = fakeShell(['credential', 'discover', ...args, '--config', file], {})
  return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
}

t.test('it prints what the settings need, and registers a client if it is told to', async t => {
  const plain = await run(`${server.url}/mcp`)
  t.match(plain, { code: 0, out: /# the server also names https:\/\/other\.example/ }, plain.err)
  t.match(plain.out, /ClientId: FILL IN/)
  t.equal(registered, undefined)
  const { code, out } = await run(`${server.url}/mcp`, '--register')
  t.equal(code, 0)
  for (const line of [
    `McpServer: ${server.url}/mcp`,
    `Issuer: ${server.url}`,
    'ClientId: client-1',
    'Scope: tools.read',
  ])
    t.match(out, line)
  t.match(registered, { redirect_uris: ['http://127.0.0.1/callback'] })
  const { out: json } = await run(`${server.url}/mcp`, '--json')
  t.strictSame(JSON.parse(json), {
    ...{ ok: true, url: `${server.url}/mcp`, issuers: [server.url, 'https://other.example'] },
    ...{ scopes: ['tools.read'], clientId: null },
  })
})

t.test('it says what is wrong with the URL or the server', async t => {
  t.match(await run('http://mcp.example'), { code: 2, err: /must be an https URL/ })
  t.match(await run(`${server.url}/other`), { code: 1, err: /has no document/ })
  issuers = () => []
  t.match(await run(`${server.url}/mcp`), { code: 1, err: /names no authorization server/ })
})
