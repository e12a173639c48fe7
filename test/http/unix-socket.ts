import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listenUnix } from '../../src/http/unix-socket.ts'
import { call } from '../fixtures/call.ts'
import { testdir } from '../fixtures/testdir.ts'

function serverFor(t: Test): Server {
  const server = createServer((_req, res) => res.end('answered'))
  t.teardown(() => server.close())
  return server
}

const setting = 'System:Server:Unix:Path'

const listen = (t: Test, path: string, mode = 0o660) => listenUnix(serverFor(t), { path, mode, setting })

const problem = (t: Test, path: string) =>
  listen(t, path).then(
    () => 'it listens',
    (error: Error) => `${error.name}: ${error.message}`,
  )

const answer = async (socketPath: string) => (await call({ socketPath })).text

t.test('the socket has its mode, whatever the umask, and is all that is left in the folder', async t => {
  const directory = testdir(t)
  for (const mode of [0o600, 0o660, 0o666]) {
    const path = join(directory, `${mode}.sock`)
    await listen(t, path, mode)
    t.equal(statSync(path).mode & 0o777, mode)
    t.equal(await answer(path), 'answered')
  }
  t.equal(readdirSync(directory).length, 3)
})

t.test('what a gateway that was killed has left is replaced', async t => {
  const path = join(testdir(t), 'gateway.sock')
  const listenAndDie = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 9))`
  spawnSync(process.execPath, ['-e', listenAndDie], { env: {} })
  t.ok(statSync(path).isSocket())
  await listen(t, path)
  t.equal(await answer(path), 'answered')
})

t.test('a socket that answers stays as it is', async t => {
  const path = join(testdir(t), 'gateway.sock')
  await listen(t, path)
  const taken = `StartupError: ${path} is in use. Stop what listens there, or set System:Server:Unix:Path.`
  t.equal(await problem(t, path), taken)
  t.equal(await answer(path), 'answered')
})

t.test('what is no socket is never removed', async t => {
  const path = join(testdir(t), 'gateway.sock')
  writeFileSync(path, 'something dear')
  const mistaken = `StartupError: ${path} exists and is not a socket. Remove it, or set System:Server:Unix:Path.`
  t.equal(await problem(t, path), mistaken)
  t.ok(existsSync(path))
})

t.test('an impossible path is reported in one line', async t => {
  const directory = testdir(t)
  t.match(
    await problem(t, join(directory, 'no/gateway.sock')),
    /^StartupError: \S+\/no is not a folder\. Create it, or set /,
  )
  t.match(await problem(t, join(directory, 'x'.repeat(108))), /^StartupError: \S+ is too long for a socket\. Set /)
  t.match(
    await problem(t, '/sys/gateway.sock'),
    /^StartupError: \S+ needs permissions that this user does not have\. Set /,
  )
})

t.test('the socket is removed with the server, unless another has taken its place', async t => {
  const directory = testdir(t)
  const path = join(directory, 'gateway.sock')
  const removeFirst = await listen(t, path)
  renameSync(path, join(directory, 'older.sock'))
  const removeSecond = await listen(t, path)
  removeFirst()
  t.ok(existsSync(path), 'it is that of the second')
  removeSecond()
  t.notOk(existsSync(path))
  t.doesNotThrow(removeSecond)
})

t.test('a server that is closed leaves no socket behind by itself where it was made', async t => {
  const directory = testdir(t)
  const server = serverFor(t)
  const remove = await listenUnix(server, { path: join(directory, 'gateway.sock'), mode: 0o600, setting })
  server.close()
  remove()
  await once(server, 'close')
  t.strictSame(readdirSync(directory), [])
})
