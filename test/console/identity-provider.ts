import t from 'tap'
import { sees, startConsole } from '../fixtures/console.ts'
import { startIdentityProvider } from '../fixtures/idp.ts'

const idp = await startIdentityProvider(t)
const { authority } = idp
const external = {
  Provider: 'Jwt',
  Jwt: { Authority: authority, Audience: 'gateway', RequireHttpsMetadata: false },
  Console: { ClientId: 'console' },
}
const bench = await startConsole(t, { config: { Security: { AgentAuth: { ExternalIdentity: external } } } })
const { url } = bench
const ada = await bench.agent({ name: 'ada', roles: ['reviewer'], externalSubject: 'johndoe' })

async function opened(t: Parameters<typeof bench.window>[0], address = `${url}/console/`) {
  const window = await bench.window(t)
  window.allow(authority)
  await window.page.goto(address)
  await window.page.locator('[data-ready]').waitFor()
  return window.page
}

t.test('the provider, and nothing else, may be called by the page', async t => {
  const { headers } = await (await opened(t))
    .context()
    .request.get(`${url}/console/`)
    .then(answer => ({ headers: answer.headers() }))
  t.match(headers['content-security-policy'], `connect-src 'self' ${authority};`)
})

t.test('a person signs in at the provider with a code and PKCE, as the agent that is bound to them', async t => {
  const page = await opened(t, `${url}/console/#/history`)
  const asked = page.waitForRequest(request => request.url().startsWith(`${authority}/authorize`))
  await page.getByRole('button', { name: /Sign in at/ }).click()
  const sent = new URL((await asked).url()).searchParams
  t.match(Object.fromEntries(sent), {
    response_type: 'code',
    client_id: 'console',
    redirect_uri: `${url}/console/`,
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
    state: /^[\w-]{43}$/,
  })
  await sees(t, page, 'ada')
  t.equal(page.url(), `${url}/console/#/history`, 'no code stays in the address, and the way leads where it was going')
  t.notMatch(await page.evaluate('JSON.stringify({ ...sessionStorage })'), /verifier/)
})

t.test('a sign-in that was not begun here is refused', async t => {
  const page = await opened(t, `${url}/console/?code=forged&state=forged`)
  await sees(t, page, 'This sign-in was not begun in this tab')
  t.equal(page.url(), `${url}/console/#/`)
})

t.test('a person to whom no agent is bound gets the reason', async t => {
  await bench.manage('POST', `/agents/${ada.id}/deactivate`)
  const page = await opened(t)
  await page.getByRole('button', { name: /Sign in at/ }).click()
  await sees(t, page, 'No agent of this gateway is bound to you')
})
