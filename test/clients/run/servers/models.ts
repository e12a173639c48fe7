/** Models with the APIs of OpenAI (chat completions, responses, files) and Anthropic (messages, files). */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { buffer, text } from 'node:stream/consumers'
import { greeting, isStreamed, type Mode, parts } from '../modes.ts'
import { type Asked, type Server, sendFile } from '../upstream.ts'

/** One event of a stream: its name, which may be empty, and its data. */
type Event = readonly [name: string, data: object | string]

interface Form {
  readonly whole: (said: string) => object
  readonly begin: readonly Event[]
  readonly part: (said: string) => readonly Event[]
  readonly end: (said: string) => readonly Event[]
}

const chunk = (delta: object, finish_reason: string | null = null): Event => [
  '',
  { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] },
]
const completions: Form = {
  whole: content => ({
    ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }),
  begin: [chunk({ role: 'assistant', content: '' })],
  part: content => [chunk({ content })],
  end: () => [chunk({}, 'stop'), ['', '[DONE]']],
}

const named = (type: string, more: object): Event => [type, { type, ...more }]
const usage = { input_tokens: 1, output_tokens: 1 }
const message = { id: 'm1', type: 'message', role: 'assistant', model: 'm', stop_sequence: null, usage }
const messages: Form = {
  whole: said => ({ ...message, content: [{ type: 'text', text: said }], stop_reason: 'end_turn' }),
  begin: [
    named('message_start', { message: { ...message, content: [], stop_reason: null } }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  ],
  part: said => [named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: said } })],
  end: () => [
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }),
    named('message_stop', {}),
  ],
}

const item = (said: string) => ({
  ...{ id: 'i1', type: 'message', role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text: said, annotations: [] }],
})
const used = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
const responseOf = (status: string, output: readonly object[]) => ({
  id: 'r1',
  object: 'response',
  status,
  output,
  usage: used,
})
const responses: Form = {
  whole: said => responseOf('completed', [item(said)]),
  begin: [
    named('response.created', { response: responseOf('in_progress', []) }),
    named('response.output_item.added', { output_index: 0, item: { ...item(''), status: 'in_progress', content: [] } }),
  ],
  part: delta => [named('response.output_text.delta', { item_id: 'i1', output_index: 0, content_index: 0, delta })],
  end: said => [
    named('response.output_item.done', { output_index: 0, item: item(said) }),
    named('response.completed', { response: responseOf('completed', [item(said)]) }),
  ],
}

const forms: Readonly<Record<string, Form>> = {
  '/v1/chat/completions': completions,
  '/v1/messages': messages,
  '/v1/responses': responses,
}

export const answerModels: Server = asked => {
  const { rest, req, res } = asked
  const target = rest.split('?', 1)[0]!
  const form = forms[target]
  if (form !== undefined) void answerForm(asked, form)
  else if (target === '/v1/files') void answerUpload(asked)
  else if (target === '/v1/files/large/content') sendFile(asked, asked.file)
  else if (target.startsWith('/v1/')) sendJson(res, req.method === 'GET' ? { data: [], models: [] } : {})
  else return false
  return true
}

async function answerForm(asked: Asked, form: Form): Promise<void> {
  const { mode, req, res, untilReleased } = asked
  const { stream = false } = JSON.parse(await text(req)) as { readonly stream?: boolean }
  if (!stream) return sendJson(res, form.whole(greeting))
  const send = (events: readonly Event[]): void => {
    for (const [name, data] of events)
      res.write(
        `${name === '' ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
      )
  }
  res.writeHead(200, { 'Content-Type': 'text/event-stream' })
  send(form.begin)
  const said = mode === 'down' ? piecesOf(asked.file) : partsOf(mode)
  for (const [at, piece] of said.entries()) {
    if (at > 0 && isStreamed(mode)) await untilReleased()
    send(form.part(piece))
    if (res.writableNeedDrain) await once(res, 'drain')
  }
  send(form.end(said.join('')))
  res.end()
}

/** The large file as text, in pieces as long as a model's are not. */
const piecesOf = (file: string): readonly string[] =>
  readFileSync(file)
    .toString('base64')
    .match(/.{1,65536}/g) ?? []

const partsOf = (mode: Mode): readonly string[] =>
  isStreamed(mode) ? [`${parts.first}\n`, `${parts.last}\n`] : [greeting]

/** A file in a form (RFC 7578); what arrived of it is told as its name. */
async function answerUpload({ req, res }: Asked): Promise<void> {
  const bytes = fileIn(await buffer(req), req.headers['content-type'] ?? '')
  sendJson(res, {
    ...{ id: 'f1', type: 'file', object: 'file', created_at: 1, purpose: 'batch', status: 'processed' },
    ...{ filename: `${bytes.length} ${hash('sha256', bytes)}`, bytes: bytes.length, size_bytes: bytes.length },
    ...{ mime_type: 'application/octet-stream', downloadable: true },
  })
}

/** The file in a form. */
export function fileIn(body: Buffer, type: string): Buffer {
  const [, boundary = ''] = /boundary="?([^";]+)/.exec(type) ?? []
  const begin = body.indexOf('\r\n\r\n', body.indexOf('filename=')) + 4
  return body.subarray(begin, body.indexOf(`\r\n--${boundary}`, begin))
}

function sendJson(res: Asked['res'], value: object): void {
  res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
}
