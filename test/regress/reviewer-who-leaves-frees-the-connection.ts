/** A reviewer who left in the middle of a long answer left its upstream connection behind, which stood still for good. */
import { Readable } from 'node:stream'
import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { openRaw } from '../fixtures/raw.ts'
import { startReview } from '../fixtures/review.ts'

t.test('when the reviewer leaves, what is not kept of the answer is not waited for', async t => {
  let closed = false
  const review = await startReview(t, {
    config: { HumanInTheLoop: { MaxStoredResponseBytes: 1_024 } },
    answer: (_req, res) => {
      res.on('close', () => {
        closed = true
      })
      const endless = new Readable({ read: () => void endless.push(Buffer.alloc(65_536)) })
      endless.pipe(res)
    },
  })
  const id = await review.hold('/long', { method: 'POST', body: 'x' })
  const reviewer = await openRaw(t, review.port)
  const fields = `Host: 127.0.0.1\r\nAuthorization: Bearer ${review.reviewer.token}\r\nContent-Length: 2\r\n`
  reviewer.write(`POST /hitl/${id}/approve HTTP/1.1\r\n${fields}Content-Type: application/json\r\n\r\n{}`)
  await reviewer.until(/200 OK/)
  reviewer.socket.destroy()
  t.ok(await eventually(() => closed, Boolean))
  const { pending } = (await (await review.call('GET', `/hitl/${id}`)).json()) as { pending: object }
  t.match(pending, { status: 'Approved', replay: 'completed', responseStatus: 200 })
})
