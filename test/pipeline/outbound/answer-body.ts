import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t from 'tap'
import { AnswerBody } from '../../../src/pipeline/outbound/answer-body.ts'

type Answer = (res: ServerResponse, req: IncomingMessage) => void

async function serve(answer: Answer): Promise<number> {
  const server = createServer((req, res) => answer(res, req)).listen(0, '127.0.0.1')
  t.teardown(() => server.close().closeAllConnections())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const nothing = () => {}
const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Bytes that tell of which stream they are and where they stand. */
const piece = (stream: number, at: number, length: number): Buffer => Buffer.alloc(length, `${stream}:${at} `)

async function bodyOf(port: number, path: string): Promise<Buffer> {
  const [response] = (await once(get({ port, path, agent: false }), 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

t.test('pieces of any length arrive in order, with a length and in chunks', async t => {
  const lengths = [1, 150, 2_047, 2_049, 9, 65_536, 65_552, 65_560, 70_000, 200_000, 3]
  const whole = piece(
    1,
    0,
    lengths.reduce((sum, length) => sum + length),
  )
  for (const spaced of [false, true]) {
    for (const fields of [[], ['Content-Length', String(whole.length)]]) {
      const port = await serve(async res => {
        res.writeHead(200, fields)
        const body = new AnswerBody(res, { onFull: nothing, onDrained: nothing })
        let at = 0
        for (const length of lengths) {
          body.add(whole.subarray(at, at + length))
          at += length
          if (spaced) await nextTurn()
        }
        body.end()
      })
      t.ok((await bodyOf(port, '/')).equals(whole), `${fields} ${spaced}`)
    }
  }
})

t.test('what one turn brings is one write: head, framing and pieces', async t => {
  const writes: string[] = []
  const port = await serve(res => {
    const socket = res.socket as Socket
    const { write } = socket
    socket.write = ((...args: Parameters<Socket['write']>) => {
      writes.push(String(args[0]))
      return write.apply(socket, args)
    }) as Socket['write']
    res.sendDate = false
    res.writeHead(200, ['Connection', 'close'])
    const body = new AnswerBody(res, { onFull: nothing, onDrained: nothing })
    body.add(Buffer.from('data: 1\n\n'))
    body.add(Buffer.from('data: 2\n\n'))
    setImmediate(() => {
      body.add(Buffer.from('data: 3\n\n'))
      setImmediate(() => body.end())
    })
  })
  t.equal(String(await bodyOf(port, '/')), 'data: 1\n\ndata: 2\n\ndata: 3\n\n')
  const head = 'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'
  t.strictSame(writes, [`${head}9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n`, '9\r\ndata: 3\n\n\r\n', '0\r\n\r\n'])
})

t.test('a head does not wait for the body, and trailers stand behind it', async t => {
  let body: AnswerBody | undefined
  const port = await serve(res => {
    res.writeHead(200, ['Trailer', 'X-Sum'])
    body = new AnswerBody(res, { onFull: nothing, onDrained: nothing })
    res.addTrailers([['X-Sum', '7']])
  })
  const [response] = (await once(get({ port, agent: false }), 'response')) as [IncomingMessage]
  body?.add(Buffer.from('late'))
  body?.end()
  let text = ''
  for await (const chunk of response) text += chunk
  t.equal(text, 'late')
  t.strictSame(response.trailers, { 'x-sum': '7' })
})

t.test('memory is not used again before a slow client has taken what is in it', async t => {
  const streams = 4
  const most = 250
  const stalled = new Set<number>()
  const port = await serve((res, req) => {
    const stream = Number(req.url?.slice(1))
    let sent = 0
    let full = false
    const more = () => {
      if (sent === most) body.end()
      else if (!full) {
        body.add(piece(stream, sent++, 60_000))
        setImmediate(more)
      }
    }
    res.writeHead(200)
    const body = new AnswerBody(res, {
      onFull() {
        full = true
        stalled.add(stream)
      },
      onDrained() {
        if (full) setImmediate(more)
        full = false
      },
    })
    more()
  })
  const arrives = async (stream: number): Promise<boolean> => {
    const [response] = (await once(get({ port, path: `/${stream}`, agent: false }), 'response')) as [IncomingMessage]
    // The buffers of the system are full, and each stream has a piece that waits.
    while (stalled.size < streams) await nextTurn()
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    const whole = Buffer.concat(Array.from({ length: most }, (_, at) => piece(stream, at, 60_000)))
    return Buffer.concat(chunks).equals(whole)
  }
  const sound = await Promise.all(Array.from({ length: streams }, (_, stream) => arrives(stream)))
  t.strictSame(sound, Array(streams).fill(true))
})

t.test('a client that takes nothing is noticed, and one that leaves harms nobody', async t => {
  let told = 0
  let gone = false
  const port = await serve(res => {
    res.writeHead(200)
    res.on('close', () => {
      gone = true
    })
    const onFull = () => {
      told += 1
    }
    const body = new AnswerBody(res, { onFull, onDrained: nothing })
    const more = () => {
      if (told > 0 || gone) return
      body.add(Buffer.alloc(60_000))
      setImmediate(more)
    }
    more()
  })
  const client = connect(port, '127.0.0.1')
  client.pause()
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  while (told === 0) await nextTurn()
  client.destroy()
  while (!gone) await nextTurn()
  t.equal(told, 1)
})
