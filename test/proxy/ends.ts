/** What hears of the end of a request (src/pipeline/ends/) fails alone. */
import t from 'tap'
import { eventually, type Line, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

t.test('a line that cannot be written is reported, and the request gives back all that it had taken', async t => {
  const origin = await startOrigin(t)
  const config = { System: { Server: { Threads: 1 }, RateLimit: { MaxInFlight: 1 } } }
  const gateway = await startGateway(t, { config, alone: 'its log fails' })
  const { token } = await gateway.agent()
  const push = (line: Line) => {
    if (line.message === 'exchange') throw new Error('the disk is full')
    return Array.prototype.push.call(gateway.log, line)
  }
  Object.assign(gateway.log, { push })
  const reports = () => gateway.log.filter(({ message }) => message.includes('access line'))
  for (let count = 1; count <= 3; count++) {
    t.equal((await gateway.proxy(token, origin.url)).status, 200)
    const lines = await eventually(reports, found => found.length === count)
    t.match(lines.at(-1), { level: 'error', message: 'the end of a request was not noted: access line' })
  }
})
