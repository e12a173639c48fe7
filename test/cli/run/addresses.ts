/** A gateway that programs could not use as a proxy themselves: on unix sockets, and with TLS. */
import { chmodSync, copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startOrigin } from '../../fixtures/origin.ts'
import { runMain, runToEnd } from '../../fixtures/process.ts'
import { nodeProgram } from '../../fixtures/run-command.ts'
import { testdir } from '../../fixtures/testdir.ts'

const { port } = await startOrigin(t)

/** Sends a request and opens a tunnel as a client of a proxy does, and prints both statuses. */
const script = `
const http = require('node:http'), { username, password, hostname, port } = new URL(process.env.HTTP_PROXY)
const headers = { 'Proxy-Authorization': 'Basic ' + btoa(username + ':' + decodeURIComponent(password)) }
const ask = (method, path, event) => new Promise(done =>
  http.request({ host: hostname, port, method, path, headers }).on(event, a => done(a.statusCode)).end())
Promise.all([ask('GET', 'http://127.0.0.1:${port}/', 'response'), ask('CONNECT', '127.0.0.1:${port}', 'connect')])
  .then(all => { console.log(all.join()); process.exit() })`

async function start(t: Test, server: object, forward: object) {
  const settings = {
    System: { Server: server },
    ForwardProxy: { Enabled: true, ...forward },
    Policy: { AssignOnRegistration: 'all' },
  }
  const policies = { 'all.yaml': 'name: all\ndefault: Allow\n' }
  const cwd = testdir(t, { 'gateway.yaml': JSON.stringify(settings), policies })
  for (const name of ['cert.pem', 'key.pem']) {
    copyFileSync(fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url)), join(cwd, name))
    chmodSync(join(cwd, name), 0o600)
  }
  const gateway = runMain(t, ['serve'], { cwd })
  await gateway.shows(/agent-gateway is ready/)
  return { cwd, printed: gateway.err() }
}

t.test('a program calls through a gateway that listens on unix sockets alone', async t => {
  const server = { Http: { Enabled: false }, Unix: { Path: 'gateway.sock' } }
  const { cwd } = await start(t, server, { Port: 0, UnixPath: 'forward.sock' })
  const ended = await runToEnd(t, ['run', '--agent', 'tour', ...nodeProgram(script)], { cwd })
  t.match(ended, { code: 0, out: '200,200\n', err: /through unix:\S+forward\.sock and trusts/ })
})

t.test('a program calls through a gateway with TLS, and no other certificate than its own is accepted', async t => {
  const server = { Http: { Port: 0 }, Tls: { CertificateFile: 'cert.pem', KeyFile: 'key.pem' } }
  const { cwd, printed } = await start(t, server, { Host: '0.0.0.0', Port: 0 })
  const [, api = ''] = /Address +\S+:(\d+)/.exec(printed) ?? []
  const [, forward = ''] = /Forward proxy +https:\S+:(\d+)/.exec(printed) ?? []
  const env = { SYSTEM__SERVER__HTTP__PORT: api, FORWARDPROXY__PORT: forward }
  const ended = await runToEnd(t, ['run', '--agent', 'tour', ...nodeProgram(script)], { cwd, env })
  t.match(ended, { code: 0, out: '200,200\n', err: /through https:\S+ and trusts/ })
  for (const name of ['cert.pem', 'key.pem']) {
    copyFileSync(fileURLToPath(new URL(`../../fixtures/tls/renewed-${name}`, import.meta.url)), join(cwd, name))
    chmodSync(join(cwd, name), 0o600)
  }
  const other = await runToEnd(t, ['run', '--agent', 'tour', ...nodeProgram(script)], { cwd, env })
  t.match(other, { code: 1, out: '', err: /No gateway answers at https:/ })
})
