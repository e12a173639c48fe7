/** Clients that are sent to a third host by an upstream. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import axios from 'axios'
import got from 'got'
import t from 'tap'
import { Agent, interceptors, request as undiciRequest } from 'undici'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { runPython } from '../fixtures/python.ts'
import { withSystem } from '../fixtures/system.ts'

const run = promisify(execFile)
const gateway = await startGateway(t)
const { token } = await gateway.agent()
const headers = { 'Gateway-Authorization': `Bearer ${token}` }
const following = new Agent().compose(interceptors.redirect({ maxRedirections: 5 }))

const pythonCalls = {
  requests: 'requests.get(sys.argv[1], headers=headers).text',
  httpx: 'httpx.get(sys.argv[1], headers=headers, follow_redirects=True).text',
}
const pythonClients = Object.entries(pythonCalls).map(([name, call]): [string, Get] => {
  const script = `import sys, ${name}\nheaders = {"Gateway-Authorization": sys.argv[2]}\nprint(${call}, end="")`
  return [`Python ${name}`, url => runPython(name, script, { args: [url, `Bearer ${token}`] })]
})

type Get = (url: string) => Promise<string>

const clients: Readonly<Record<string, Get>> = {
  fetch: async url => (await fetch(url, { headers })).text(),
  axios: async url => (await axios.get(url, { headers })).data,
  got: url => got(url, { headers }).text(),
  undici: async url => (await undiciRequest(url, { headers, dispatcher: following })).body.text(),
}
const systemClients: typeof clients = {
  curl: async url => (await run('curl', ['-sSL', '-H', `Gateway-Authorization: Bearer ${token}`, url])).stdout,
  ...Object.fromEntries(pythonClients),
}

for (const [name, get] of Object.entries({ ...clients, ...(withSystem && systemClients) })) {
  t.test(`${name} follows a redirect to a third host through the gateway, and the token stays there`, async t => {
    const third = await startOrigin(t)
    const origin = await startOrigin(t, (_req, res) => res.writeHead(302, { Location: `${third.url}/there` }).end())
    t.equal(await get(`${gateway.url}/proxy/${origin.url}/`), 'hello from upstream')
    t.equal(third.seen.length, 1)
    t.notMatch(JSON.stringify([...origin.seen, ...third.seen]), token)
  })
}
