/** Clients that are sent to a third host by an upstream. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import axios from 'axios'
import got from 'got'
import { Agent, interceptors, request as undiciRequest } from 'undici'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import t from '../fixtures/tap.ts'

const run = promisify(execFile)
const gateway = await startGateway(t)
const { token } = await gateway.agent()
const headers = { 'Gateway-Authorization': `Bearer ${token}` }
const following = new Agent().compose(interceptors.redirect({ maxRedirections: 5 }))

/** Debian's Python, and its packages as far as they are installed. */
async function pythonClients(): Promise<Readonly<Record<string, Get>>> {
  const python = '/usr/bin/python3'
  const calls = {
    requests: 'requests.get(sys.argv[1], headers=headers).text',
    httpx: 'httpx.get(sys.argv[1], headers=headers, follow_redirects=True).text',
  }
  const found: Record<string, Get> = {}
  for (const [name, call] of Object.entries(calls)) {
    const script = `import sys, ${name}\nheaders = {"Gateway-Authorization": sys.argv[2]}\nprint(${call}, end="")`
    const isThere = await run(python, ['-c', `import ${name}`]).then(
      () => true,
      () => false,
    )
    if (isThere)
      found[`Python ${name}`] = async url => (await run(python, ['-c', script, url, `Bearer ${token}`])).stdout
    else t.comment(`${name} is not installed here: apt-get install python3-${name}`)
  }
  return found
}

type Get = (url: string) => Promise<string>

const clients: Readonly<Record<string, Get>> = {
  fetch: async url => (await fetch(url, { headers })).text(),
  axios: async url => (await axios.get(url, { headers })).data,
  got: url => got(url, { headers }).text(),
  undici: async url => (await undiciRequest(url, { headers, dispatcher: following })).body.text(),
  curl: async url => (await run('curl', ['-sSL', '-H', `Gateway-Authorization: Bearer ${token}`, url])).stdout,
  ...(await pythonClients()),
}

for (const [name, get] of Object.entries(clients)) {
  t.test(`${name} follows a redirect to a third host through the gateway, and the token stays there`, async t => {
    const third = await startOrigin(t)
    const origin = await startOrigin(t, (_req, res) => res.writeHead(302, { Location: `${third.url}/there` }).end())
    t.equal(await get(`${gateway.url}/proxy/${origin.url}/`), 'hello from upstream')
    t.equal(third.seen.length, 1)
    t.notMatch(JSON.stringify([...origin.seen, ...third.seen]), token)
  })
}
