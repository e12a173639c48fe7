/** Fields of calls to model providers. */

import t from 'tap'
import { missing, unreadable } from '../../../../src/policy/values/truth.ts'
import { readField } from '../../../fixtures/read-field.ts'

t.test('bodies of model APIs are read wherever they go', async t => {
  const of = (path: string, body: unknown) => readField(path, { request: { url: 'https://a.example/', body } })
  const body = {
    model: 'm',
    stream: true,
    max_tokens: 10,
    system: 'be brief',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'é' }] }],
    tools: [{ type: 'function', function: { name: 'f' } }, { name: 'g' }, { type: 'web_search' }],
  }
  t.equal(of('llm.model', body), 'm')
  t.equal(of('llm.stream', body), true)
  t.equal(of('llm.maxTokens', body), 10)
  t.strictSame(of('llm.maxTokens', { ...body, max_completion_tokens: 99 }), [10, 99])
  t.equal(of('llm.maxTokens', { max_tokens: null }), null)
  t.strictSame(of('llm.tools', body), { each: ['f', 'g', 'web_search'] })
  t.equal(of('llm.promptBytes', body), 8 + 4 + 4 + 2)
  for (const path of ['llm.model', 'llm.stream', 'llm.maxTokens', 'llm.tools', 'llm.promptBytes']) {
    t.equal(of(path, {}), missing, path)
  }
})

const at = (path: string, url: string, body: unknown = { model: 'm' }) =>
  readField(path, { request: { method: 'POST', url: `https://a.example${url}`, body } })

t.test('the format is known by the path, before the body', async t => {
  const providers = {
    openai: [
      '/v1/chat/completions',
      '/openai/v1/responses',
      '/v1/embeddings/',
      '/v1beta/openai/chat/completions',
      '/openai/deployments/my-gpt/chat/completions',
    ],
    anthropic: ['/v1/messages', '/v1/messages/count_tokens'],
    gemini: ['/v1beta/models/gemini-2.5-pro:streamGenerateContent', '/v1/projects/p/models/g:generateContent'],
    ollama: ['/api/chat', '/api/generate', '/api/embed'],
  }
  for (const [provider, paths] of Object.entries(providers)) {
    for (const path of paths) {
      const given = { request: { method: 'POST', url: `https://a.example${path}`, body: {} } }
      t.equal(readField('llm.provider', given, 'head'), provider, path)
    }
  }
  for (const path of ['/v1/orders', '/messages', '/api/chats', '/v1/models/gpt', '/surveys/7/responses']) {
    t.equal(at('llm.provider', path), missing, path)
  }
})

t.test('Gemini has the model in the path, whatever the body says', async t => {
  const url = '/v1beta/models/gemini%2Dpro:streamGenerateContent'
  const contents = [
    { role: 'user', parts: [{ text: 'é' }] },
    { role: 'model', parts: [{ text: 'ok' }] },
  ]
  const tools = [{ functionDeclarations: [{ name: 'f' }, { name: 'g' }] }, { googleSearch: {} }]
  const body = { model: 'other', contents, tools, generationConfig: { maxOutputTokens: 7 }, systemInstruction: 'hi' }
  t.equal(at('llm.model', '/v1beta/models/gemini-pro:generateContent', body), 'gemini-pro')
  t.equal(at('llm.stream', '/v1beta/models/gemini-pro:generateContent', body), false)
  t.equal(at('llm.stream', '/v1beta/models/gemini-pro:streamGenerateContent', body), true)
  t.equal(at('llm.model', url, body), unreadable, 'servers may read two models in it')
  const plain = '/v1beta/models/gemini-pro:generateContent'
  t.equal(at('llm.maxTokens', plain, body), 7)
  t.strictSame(at('llm.tools', plain, body), { each: ['f', 'g', 'googleSearch', 'google_search'] })
  t.equal(at('llm.messages', plain, body), 2)
  t.strictSame(at('llm.roles', plain, body), { each: ['user', 'model'] })
  t.equal(at('llm.promptBytes', plain, body), 'user'.length + 2 + 'model'.length + 2 + 2)
})

t.test('every name that a provider may take for a tool is one', async t => {
  const named = (tool: object, url = '/v1/chat/completions') => at('llm.tools', url, { tools: [tool] })
  const gemini = '/v1beta/models/g:generateContent'
  const f = { functionDeclarations: [{ name: 'f' }] }
  t.strictSame(named({ ...f, googleSearch: {} }, gemini), { each: ['f', 'googleSearch', 'google_search'] })
  t.strictSame(named({ ...f, function_declarations: [{ name: 'g' }], code_execution: {} }, gemini), {
    each: ['f', 'g', 'code_execution', 'codeExecution'],
  })
  t.strictSame(named({ name: 'f', codeExecution: {} }, gemini), {
    each: ['f', 'name', 'codeExecution', 'code_execution'],
  })
  for (const name of ['Code_Execution', 'CODEEXECUTION', 'codeexecution']) {
    const each = [name, 'code_execution', 'codeExecution']
    t.strictSame(named({ [name]: {} }, gemini), { each }, 'for readers that ignore letter case')
  }
  t.strictSame(named({ type: 'function', name: 'f', function: { name: 'g' } }), { each: ['f', 'g'] })
  t.strictSame(named({ type: 'custom', custom: { name: 'f' } }), { each: ['f'] })
  t.strictSame(named({ type: 'web_search', name: 'f' }), { each: ['f', 'web_search'] }, 'the type is the tool')
  t.strictSame(named({ functionDeclarations: 1, name: 'f' }), { each: ['f', unreadable, 'name'] })
  t.strictSame(named({ type: 'function', function: { name: 'f', Name: 'g' } }), { each: [unreadable] })
  const limits = {
    generationConfig: { maxOutputTokens: 7, max_output_tokens: 8 },
    generation_config: { maxOutputTokens: 9 },
  }
  t.strictSame(at('llm.maxTokens', gemini, limits), [7, 8, 9])
})

t.test('a member in another letter case is unreadable', async t => {
  const messages = [{ role: 'user', content: 'a' }]
  const bodies = {
    'llm.model': { Model: 'm' },
    'llm.stream': { stream: false, STREAM: true },
    'llm.maxTokens': { max_tokens: 5, Max_tokens: 9 },
    'llm.tools': { tools: [], Tools: [{ name: 'f' }] },
    'llm.messages': { messages, Messages: [] },
    'llm.roles': { messages, Messages: [] },
    'llm.promptBytes': { messages, Messages: [] },
  }
  for (const [path, body] of Object.entries(bodies)) {
    t.equal(at(path, '/v1/chat/completions', { model: 'm', ...body }), unreadable, path)
  }
})

t.test('Azure has a deployment in the path, and perhaps a model in the body', async t => {
  const url = '/openai/deployments/my-gpt/chat/completions'
  t.strictSame(at('llm.model', url), ['my-gpt', 'm'])
  t.equal(at('llm.model', url, { messages: [] }), 'my-gpt')
})

t.test('models that a provider may take instead count beside the first one, with their numbers of tokens', async t => {
  const url = '/v1/chat/completions'
  const modelOf = (body: object) => at('llm.model', url, body)
  t.strictSame(modelOf({ model: 'm', models: ['a', 'b'] }), ['m', 'a', 'b'])
  t.strictSame(modelOf({ models: ['a'] }), 'a')
  t.strictSame(modelOf({ model: 'm', fallbacks: [{ model: 'a' }], preset: 'mine' }), ['m', 'a', '@preset/mine'])
  t.strictSame(modelOf({ model: 'm', models: [], fallbacks: null }), 'm')
  for (const odd of [{ models: [7] }, { Models: ['a'] }, { fallbacks: [{}] }]) {
    t.equal(modelOf({ model: 'm', ...odd }), unreadable, JSON.stringify(odd))
  }
  t.equal(at('llm.model', '/v1/orders', { models: ['a'] }), missing, 'there it is something else')
  const fallbacks = [{ model: 'a', max_tokens: 9 }, 'b']
  t.strictSame(at('llm.maxTokens', url, { model: 'm', max_tokens: 5, fallbacks }), [5, 9])
})

t.test('Ollama streams unless the body says otherwise', async t => {
  t.equal(at('llm.stream', '/api/chat'), true)
  t.equal(at('llm.stream', '/api/chat', { stream: false }), false)
  t.equal(at('llm.stream', '/api/embed'), missing)
  t.equal(at('llm.maxTokens', '/api/generate', { model: 'm', options: { num_predict: 5 } }), 5)
})

t.test('a call whose model is not found is unreadable, another request has none', async t => {
  t.equal(at('llm.model', '/v1/chat/completions', {}), unreadable)
  t.equal(at('llm.model', '/v1/chat/completions', []), unreadable)
  t.equal(at('llm.model', '/v1/chat/completions', '{"model":'), unreadable)
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const [url, found] of [
    ['/v1/messages', unreadable],
    ['/v1/orders', missing],
  ] as const) {
    const request = { method: 'POST', url: `https://a.example${url}`, headers: form, body: 'model=m' }
    t.equal(readField('llm.model', { request }), found, url)
  }
  t.equal(at('llm.model', '/v1/orders', {}), missing)
  t.equal(at('llm.model', '/v1/chat;x/completions', {}), unreadable)
})

t.test('messages are counted in every format, with their roles', async t => {
  const messages = [{ role: 'system' }, { role: 'user' }, { role: 'user' }]
  t.equal(at('llm.messages', '/v1/chat/completions', { messages }), 3)
  t.strictSame(at('llm.roles', '/v1/chat/completions', { messages }), { each: ['system', 'user'] })
  t.equal(at('llm.messages', '/v1/responses', { input: 'hello' }), 1)
  t.equal(at('llm.roles', '/v1/responses', { input: 'hello' }), missing)
  t.equal(at('llm.messages', '/v1/responses', { input: { role: 'user' } }), unreadable)
  t.equal(at('llm.tools', '/v1/responses', { tools: 'all' }), unreadable)
  t.strictSame(at('llm.tools', '/v1/chat/completions', { functions: [{ name: 'f' }] }), { each: ['f'] })
})
