/** The sender that measures CPU time: it fails with a message where it could wait for ever. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Contestant } from '../../bench/lib/rounds.ts'
import { measureSlices } from '../../bench/lib/sliced.ts'

const size = { connections: 1, slices: 2, perSlice: 1, warmup: 0, cores: undefined }

/** Answers each request after a while, and closes the connection a moment after the answer, unless it is to be kept. */
async function startServer(t: Test, delayMs: number, keepMs: number): Promise<Contestant> {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', async () => {
      await setTimeout(delayMs)
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      await setTimeout(keepMs, undefined, { ref: false })
      socket.end()
    })
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const request = { url: `http://127.0.0.1:${port}/`, method: 'GET', headers: {} }
  const running = { ...{ pid: process.pid, shows: unused }, listensOn: unused, stop: unused }
  return { name: String(port), request, process: running }
}

async function unused(): Promise<never> {
  throw new Error('cannot happen: only the id of the process is read')
}

t.test('the CPU time of each slice is reported', async t => {
  const proxies = [await startServer(t, 0, 5_000), await startServer(t, 0, 5_000)]
  const cpu = await measureSlices(proxies, size)
  for (const { name } of proxies) t.match(cpu.get(name), [Number, Number])
})

t.test('a connection that is closed while another proxy has its turn ends the run with a message', async t => {
  const proxies = [await startServer(t, 0, 20), await startServer(t, 300, 600)]
  await t.rejects(measureSlices(proxies, size), /a connection was closed while others had their turn/)
})
