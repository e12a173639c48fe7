import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { createChecks } from '../../src/api/check.ts'
import { openApi, readOperations } from '../../src/api/openapi.ts'
import { refusalKinds } from '../../src/base/refusal-kinds.ts'
import type { Handlers } from '../../src/management/call.ts'
import type { Guard } from '../../src/management/guard.ts'
import { createRouter } from '../../src/management/router.ts'
import { startControl } from '../fixtures/control.ts'

const operations = readOperations(openApi)
const root = new URL('../../', import.meta.url)

t.test('every operation has a handler, and every handler an operation', async t => {
  // createRouter refuses anything else; see below.
  await t.resolves(startControl(t))
})

t.test('a missing handler, an orphan and a handler on the wrong side of the guard do not start', async t => {
  const map = (open: boolean) =>
    Object.fromEntries(
      operations.filter(({ access }) => (access.length === 0) === open).map(({ id }) => [id, () => ({})]),
    )
  const start = (handlers: object) =>
    createRouter(openApi, handlers as Handlers, {} as Guard, {} as Parameters<typeof createRouter>[3])
  const [open, guarded] = [map(true), map(false)]
  t.doesNotThrow(() => start({ open, guarded }))
  const { listAgents, ...fewer } = guarded
  t.throws(() => start({ open, guarded: fewer }), /without a handler: \[guarded listAgents\]/)
  t.throws(() => start({ open: { ...open, listAgents }, guarded: fewer }), /without an operation: \[open listAgents\]/)
  t.throws(
    () => start({ open, guarded: { ...guarded, orphan: listAgents } }),
    /without an operation: \[guarded orphan\]/,
  )
})

t.test('an operation without x-roles does not start', async t => {
  const paths = { '/x': { get: { operationId: 'x' } } }
  t.throws(() => readOperations({ ...openApi, paths }), /x has no x-roles/)
})

t.test('security says what x-roles says', async t => {
  const document = openApi.paths as unknown as Record<string, Record<string, { security: object[] }>>
  for (const { id, path, method, access } of operations) {
    const { security } = document[path]![method.toLowerCase()]!
    t.strictSame(security, access.length === 0 ? [] : [{ managementToken: [] }], id)
  }
})

t.test('the codes of problems are those of the table of refusals', async t => {
  const check = createChecks(openApi)('/components/schemas/Problem')
  const problem = { type: 't', title: 't', status: 400, detail: 'd', requestId: 'r' }
  for (const code of Object.keys(refusalKinds)) t.strictSame(check({ ...problem, code }), [], code)
  t.match(check({ ...problem, code: 'other' }), [{ field: 'code' }])
})

/** Files that send HTTP by themselves, and why. */
const senders: Readonly<Record<string, readonly string[]>> = {
  'it compares the answers with the document': ['fixtures/documented', 'fixtures/call', 'fixtures/kept'],
  'it calls /proxy or an upstream': [
    'fixtures/gateway',
    'forward/node-clients',
    'cli/run/run',
    'cli/serve',
    'clients/http',
    'clients/mcp-sample',
    'proxy/agent-keys',
    'proxy/answer-readers',
    'proxy/client-aborts',
    'proxy/constant-memory',
    'proxy/fields',
    'proxy/head-decisions',
    'proxy/http2',
    'proxy/model-usage',
    'proxy/hundred-streams',
    'proxy/leading-fields',
    'proxy/outcomes',
    'proxy/own-shortage',
    'proxy/redirects',
    'proxy/streams',
    'proxy/time-limits',
    'proxy/virtual-hosts',
    'proxy/without-credentials',
    'security/two-agents',
  ],
  'it calls a server of its own, or an identity provider': [
    'cli/credential',
    'clients/credentials',
    'clients/mcp-oauth',
    'clients/fixtures/consent-provider',
    'clients/fixtures/oidc-provider',
    'clients/mcp-host',
    'fixtures/idp',
    'http/respond',
    'http/strip-closed',
    'pipeline/outbound/answer-body',
    'security/tokens-on-the-wire',
    'system/prometheus',
  ],
  'it calls operations where they are not served': ['listeners/management'],
  'it sends what no documented client would': ['fixtures/attacks', 'security/fuzz', 'security/hostile'],
  'it is about the files of the console, byte for byte': ['console/files'],
  'it is about what a browser does with pages of an upstream': ['console/one-origin'],
  'it is about clients that follow redirects': ['management/hitl-inert'],
  'it calls upstreams through the forward proxy, or is told by an approval what they answer': [
    'clients/run/driver',
    'clients/run/scripts/fetch',
    'clients/run/scripts/http',
    'clients/run/scripts/undici',
    'packages/image',
  ],
}

t.test('every other test has the answers of the management API compared with the document', async t => {
  const files = globSync('test/**/*.ts', { cwd: root, exclude: ['**/node_modules/**'] })
  const sends = /(?<![.\w])fetch\(|^import \{[^}]*\b(?:request|get)\b[^}]*\} from '(?:node:https?|undici)'/m
  const found = files.filter(file => sends.test(readFileSync(new URL(file, root), 'utf8')))
  const listed = Object.values(senders).flatMap(names => names.map(name => `test/${name}.ts`))
  t.strictSame(found.sort(), listed.sort())
})

t.test('the document has no mistakes and no warnings', async t => {
  const cli = new URL('node_modules/@redocly/cli/bin/cli.js', root).pathname
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const args = [cli, 'lint', 'openapi.json', '--format=json']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env })
  t.strictSame(JSON.parse(stdout).problems, [])
})

t.test('code generators can read it: patterns compile with the u flag and without, and arrays have items', async t => {
  for (const [path, schema] of schemasIn(JSON.parse(readFileSync(new URL('openapi.json', root), 'utf8')))) {
    const { pattern, type } = schema
    if (typeof pattern === 'string')
      for (const flags of ['', 'u']) t.doesNotThrow(() => new RegExp(pattern, flags), path)
    if (type === 'array') t.ok('items' in schema || 'prefixItems' in schema, path)
    if (typeof schema['operationId'] === 'string') t.ok(Array.isArray(schema['tags']), `${path} has tags`)
  }
})

function* schemasIn(value: unknown, path = ''): Generator<readonly [string, Readonly<Record<string, unknown>>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Readonly<Record<string, unknown>>]
  for (const [key, below] of Object.entries(value)) yield* schemasIn(below, `${path}/${key}`)
}
