/** The files of the console, with what the settings put into its page. */
import t from 'tap'
import type { Reply } from '../../src/http/respond.ts'
import type { OpenCall } from '../../src/management/call.ts'
import { consoleFileHandlers } from '../../src/management/console-files.ts'
import { testdir } from '../fixtures/testdir.ts'

const head = '<html><head><title>x</title></head></html>'
const folder = testdir(t, { 'index.html': head, assets: { 'a.js': 'let a', 'a.txt': 'no type', 'a.css': 'b{}' } })

function ask(operation: 'getConsole' | 'getConsoleAsset', named = '', more: object = {}) {
  const handlers = consoleFileHandlers({ folder, provider: undefined, hasPush: false, hasSlack: false, ...more })
  const { accept = '' } = more as { readonly accept?: string }
  const call = { named, req: { headers: { 'accept-encoding': accept } } } as unknown as OpenCall
  return handlers[operation]!(call) as Reply & { readonly refusal?: string }
}

const fieldOf = ({ headers = [] }: Reply, name: string) => headers[headers.indexOf(name) + 1] ?? ''

t.test('without a provider and without pushes the page is as it was built', async t => {
  const page = ask('getConsole')
  t.equal(String(page.body), head)
  t.match(fieldOf(page, 'Content-Security-Policy'), /connect-src 'self';.* worker-src 'none'; trusted-types 'none'$/)
})

t.test('T16 the settings of the provider are text in the page, and its origin alone may be called', async t => {
  const provider = { authority: 'https://id.example/realm', clientId: '"><script>&', scope: 'openid' }
  const page = ask('getConsole', '', { provider })
  t.match(String(page.body), '<meta name="provider" content="{&#34;authority&#34;:')
  t.notMatch(String(page.body), '<script>')
  t.match(fieldOf(page, 'Content-Security-Policy'), "connect-src 'self' https://id.example;")
})

t.test('pushes are told to the page, and its worker may run', async t => {
  const page = ask('getConsole', '', { hasPush: true })
  t.match(String(page.body), '<meta name="push" content="on">')
  t.match(fieldOf(page, 'Content-Security-Policy'), "worker-src 'self'; trusted-types worker")
})

t.test('files of a known type are served, others are not', async t => {
  t.equal(String(ask('getConsoleAsset', 'a.js').body), 'let a')
  t.equal(fieldOf(ask('getConsoleAsset', 'a.css'), 'Content-Type'), 'text/css; charset=utf-8')
  t.equal(fieldOf(ask('getConsoleAsset', 'a.js', { accept: 'gzip' }), 'Content-Encoding'), 'gzip')
  t.equal(ask('getConsoleAsset', 'a.txt').refusal, 'not_found')
})

t.test('without a build there is neither page nor file', async t => {
  const nothing = { folder: testdir(t, {}) }
  t.equal(ask('getConsole', '', nothing).refusal, 'not_found')
  t.equal(ask('getConsoleAsset', 'a.js', nothing).refusal, 'not_found')
})
