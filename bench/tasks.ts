/** Ten tasks of reviewers and admins in the console, each with its steps, its time and a picture to look at. */
import { mkdirSync } from 'node:fs'
import type { BrowserContextOptions } from 'playwright-core'
import t, { type Test } from 'tap'
import { startConsole } from '../test/fixtures/console.ts'
import type { TestAgent } from '../test/fixtures/gateway.ts'
import { readOptions } from './lib/options.ts'
import { Person } from './lib/person.ts'
import { gradient } from './lib/png.ts'
import { table } from './lib/table.ts'

const help = `usage: node bench/tasks.ts [FOLDER [NAME]]

  FOLDER   where the pictures go (.tap/tasks)
  NAME     only tasks with it in their name
`

const [folder = '.tap/tasks', only] = readOptions(help, {}, { least: 0, most: 2 }).positionals
mkdirSync(folder, { recursive: true })
// 500 requests are held first, which takes longer than tests may.
t.setTimeout(0)
const json = { 'Content-Type': 'application/json' }
let answers = 0
const bench = await startConsole(t, {
  answer(req, res) {
    // The first answer to a transfer never comes.
    const isLost = req.url === '/v1/transfers' && answers++ === 0
    req
      .resume()
      .on('end', () => (isLost ? res.destroy() : res.writeHead(201, json).end('{"id":"re_17","status":"done"}')))
  },
  config: {
    HumanInTheLoop: { MaxPendingPercentPerAgent: 100 },
    System: { RateLimit: { RequestsPerMinute: 1_000_000, Burst: 100_000 } },
  },
})
const equal = (field: string, value: string) => ({ field, operator: 'eq', value })
await bench.policy({
  name: 'support',
  default: 'Allow',
  rules: [
    {
      name: 'refunds',
      effect: 'Hitl',
      title: 'Refund {input.body.amount} {input.body.currency} to {input.body.customer}',
      reason: 'Refunds need a person',
      conditions: [equal('input.path', '/v1/refunds')],
    },
    {
      name: 'notes',
      effect: 'Hitl',
      title: 'Note on {input.body.customer}',
      conditions: [equal('input.path', '/v1/notes')],
    },
    { name: 'mails', effect: 'Hitl', title: 'Mail to {input.body.to}', conditions: [equal('input.path', '/v1/mails')] },
    { name: 'deletes', effect: 'Hitl', conditions: [equal('input.method', 'DELETE')] },
    { name: 'other writing', effect: 'Hitl', conditions: [equal('input.method', 'POST')] },
  ],
})
const newBot = (name: string) => bench.agent({ name, ownerId: 'team-support', policyName: 'support' })
const bot = await newBot('support-bot')
const ada = await bench.agent({ name: 'ada', ownerId: 'people', roles: ['reviewer', 'auditor'] })
const admin = await bench.agent({
  name: 'grace',
  ownerId: 'people',
  roles: ['admin'],
})
const send = (path: string, body: unknown, by: TestAgent = bot) =>
  bench.hold(path, { bot: by, headers: json, body: JSON.stringify(body) })
const refund = (amount: number, customer = 'c-17') => send('/v1/refunds', { amount, currency: 'EUR', customer })

async function denyAll(): Promise<void> {
  for (const { id } of JSON.parse((await bench.manage('GET', '/hitl')).text)) await bench.deny(id)
}

const rows: string[][] = []

interface Task extends Pick<BrowserContextOptions, 'viewport'> {
  readonly name: string
  readonly who: TestAgent
  /** Where the page is when the task begins. */
  readonly route?: string
  /** What is there before. */
  readonly prepare?: () => Promise<unknown>
  /** Takes a picture in the middle, when it is called. */
  readonly act: (person: Person, picture: (name: string) => Promise<void>) => Promise<unknown>
}

function task(task: Task): void {
  if (only !== undefined && !task.name.includes(only)) return
  const number = rows.length + 1
  rows.push([])
  t.test(task.name, { timeout: 600_000 }, async t => {
    await task.prepare?.()
    const page = await opened(t, task)
    page.setDefaultTimeout(15_000)
    const person = new Person(page)
    const picture = async (name: string) => {
      await page.screenshot({ path: `${folder}/${String(number).padStart(2, '0')}-${name}.png` })
    }
    const begun = Date.now()
    const act = async () => {
      await task.act(person, picture)
      await page.locator('dialog').waitFor({ state: 'detached' })
    }
    await act().catch(async error => {
      await picture('fault')
      throw error
    })
    const seconds = (Date.now() - begun) / 1_000
    await picture('end')
    rows[number - 1] = [task.name, String(person.steps), person.seconds.toFixed(1), seconds.toFixed(1)]
    t.pass(task.name)
  })
}

async function opened(t: Test, { who, route = '/', viewport = { width: 1280, height: 800 } }: Task) {
  if (route === 'signed out') {
    const { page } = await bench.window(t, { viewport })
    await page.goto(`${bench.url}/console/`)
    return page
  }
  const page = await bench.signedIn(t, who, { route, viewport })
  await page.getByText('Live', { exact: true }).waitFor()
  return page
}

task({
  name: 'First sign-in, to the first agent and its first call',
  who: admin,
  route: 'signed out',
  async act(person, picture) {
    const { page } = person
    await person.fill(page.getByLabel('Agent id'), admin.id)
    await person.fill(page.getByLabel('Secret'), admin.clientSecret)
    await picture('sign-in')
    await person.keys('Enter')
    await person.click(page.getByRole('link', { name: 'Agents', exact: true }))
    await person.click(page.getByRole('link', { name: 'Register an agent' }))
    await person.fill(page.getByLabel('Name', { exact: true }), 'billing-bot')
    await person.fill(page.getByLabel('Owner, who'), 'team-billing')
    await person.choose(page.getByLabel('Policy'), 'support')
    await picture('form')
    await person.click(page.getByRole('button', { name: 'Register', exact: true }))
    await page.getByText('Its key').waitFor()
  },
})

task({
  name: 'A refund approved by keys',
  who: ada,
  prepare: () => refund(120),
  async act(person, picture) {
    const { page } = person
    await page.locator('.request .digest').waitFor()
    await picture('open')
    await person.keys('a', 'Control+Enter')
    await page.locator('.request').getByText('completed, 201').first().waitFor()
  },
})

task({
  name: '500 waiting triaged: 260 approved, 190 denied, 48 of 50 deletes denied',
  who: ada,
  async prepare() {
    const bulk = await newBot('newsletter-bot')
    for (let index = 0; index < 260; index++)
      await send('/v1/notes', { customer: `c-${index}`, text: 'called back' }, bulk)
    for (let index = 0; index < 190; index++)
      await send('/v1/mails', { to: `user${index}@example.com`, text: 'offer' }, bulk)
    for (let index = 0; index < 50; index++) await bench.hold(`/v1/orders/${index}`, { bot: bulk, method: 'DELETE' })
  },
  async act(person, picture) {
    const { page } = person
    await page.getByText('500 waiting').waitFor()
    await person.choose(page.getByLabel('Groups'), 'rule')
    await picture('groups')
    const decide = async (verdict: 'Approve…' | 'Deny…', rounds: number) => {
      await person.click(page.locator('.group-head').first().getByRole('button', { name: 'Select' }))
      for (let round = 0; round < rounds; round++) {
        await person.click(page.locator('.several').getByRole('button', { name: verdict }))
        await page.getByText('Reading what differs').waitFor({ state: 'detached' })
        if (round === 0) await picture(verdict.slice(0, -1).toLowerCase())
        if (verdict === 'Deny…') await person.click(page.getByRole('button', { name: /Ask the owner/ }))
        if (rounds === 1) {
          for (const at of [3, 7]) await person.choose(page.locator('dialog').getByLabel('Verdict').nth(at), 'leave')
          await picture('exceptions')
        }
        await person.keys('Control+Enter')
        await page.locator('dialog').getByRole('button', { name: 'Close' }).waitFor()
        await person.keys('Escape')
      }
    }
    await decide('Approve…', 3)
    await decide('Deny…', 2)
    await decide('Deny…', 1)
    await page.getByText('2 waiting').waitFor()
  },
})

task({
  name: 'A changed amount found in a list of 400 payments, and denied',
  who: ada,
  async prepare() {
    for (const { id } of await JSON.parse((await bench.manage('GET', '/hitl')).text)) await bench.deny(id)
    const payer = await newBot('payroll-bot')
    const payments = (last: number) =>
      Array.from({ length: 400 }, (_, index) => ({ to: `DE${index}`, amount: index === 317 ? last : 2_000 + index }))
    await bench.approve(await send('/v1/payroll', { month: '2026-05', payments: payments(2_317) }, payer))
    await send('/v1/payroll', { month: '2026-06', payments: payments(92_317) }, payer)
  },
  async act(person, picture) {
    const { page } = person
    await page.locator('.json .changed', { hasText: '92317' }).waitFor()
    await picture('changed')
    await person.keys('d')
    await person.type('The amount of payment 317 is 40 times that of May.')
    await person.keys('Control+Enter')
    await page.getByText('Denied by you').first().waitFor()
  },
})

task({
  name: 'A multipart upload with a picture, looked at and approved',
  who: ada,
  async prepare() {
    const disposition = 'Content-Disposition: form-data; name='
    const text = (...lines: readonly string[]) => Buffer.from(lines.join('\r\n'))
    const body = Buffer.concat([
      text(
        '--b',
        `${disposition}"claim"`,
        'Content-Type: application/json',
        '',
        '{"order":4711,"reason":"damaged"}',
        '',
      ),
      text('--b', `${disposition}"photo"; filename="parcel.png"`, 'Content-Type: image/png', '', ''),
      gradient(320, 200),
      text('', '--b--', ''),
    ])
    await bench.hold('/v1/claims', { bot, headers: { 'Content-Type': 'multipart/form-data; boundary=b' }, body })
  },
  async act(person, picture) {
    await person.page.locator('.picture canvas').waitFor()
    await picture('parts')
    await person.keys('a', 'Control+Enter')
    await person.page.locator('.request').getByText('completed, 201').first().waitFor()
  },
})

task({
  name: 'A policy edited, tested and published',
  who: admin,
  route: '/policies/support',
  async act(person, picture) {
    const { page } = person
    await person.click(page.getByRole('link', { name: 'Edit' }))
    const text = page.locator('#policy-text')
    const before = await text.inputValue()
    const small =
      '"operator": "gt",\n          "value": 50,\n          "field": "input.body.amount"\n        },\n        {\n'
    const changed = before.replace('"conditions": [\n        {\n', `"conditions": [\n        {\n          ${small}`)
    // As if it were typed at its place.
    person.seconds += small.length * 0.2
    await person.fill(text, changed)
    person.seconds -= changed.length * 0.2
    await person.click(page.getByRole('button', { name: 'Add a test' }))
    await person.fill(page.getByLabel('Method'), 'POST')
    await person.fill(page.getByLabel('URL'), 'https://api.example/v1/refunds')
    await person.fill(page.getByLabel('Header fields'), 'Content-Type: application/json')
    await person.fill(page.getByLabel('Body', { exact: true }), '{"amount":80}')
    await person.choose(page.getByLabel('Must be'), 'Hitl')
    await page.getByText('passes', { exact: true }).waitFor()
    await picture('editor')
    await person.click(page.locator('.primary:not(:disabled)', { hasText: 'Publish…' }))
    await person.type('Small refunds need nobody')
    await picture('publish')
    await person.keys('Control+Enter')
    await page.getByText('The policy is in force.').first().waitFor()
  },
})

task({
  name: 'A quarantined agent found, explained, and let in again',
  who: admin,
  async prepare() {
    const rogue = await newBot('rogue-bot')
    const asks = { amount: 9_000, currency: 'EUR', customer: 'c-1' }
    // Denials cost it its trust, until it is refused.
    for (;;) {
      const id = await send('/v1/refunds', asks, rogue).catch(() => undefined)
      if (id === undefined) return denyAll()
      await bench.deny(id, { comment: 'Nobody asked for this' })
    }
  },
  async act(person, picture) {
    const { page } = person
    await person.keys('Control+k')
    await person.type('agent rogue')
    await page
      .getByRole('option', { name: /rogue-bot/ })
      .first()
      .waitFor()
    await picture('palette')
    await person.keys('Enter')
    await page.getByText('The gateway quarantined it').waitFor()
    await picture('why')
    await person.click(page.getByRole('button', { name: 'Lift quarantine…' }))
    await person.keys('Control+Enter')
    await page.getByText('The quarantine is lifted.').first().waitFor()
  },
})

task({
  name: 'A transfer that was sent without an answer, understood and sent again',
  who: ada,
  prepare: () => send('/v1/transfers', { amount: 75, iban: 'DE02120300000000202051' }),
  async act(person, picture) {
    const { page } = person
    await page.locator('.request .digest').waitFor()
    await person.keys('a', 'Control+Enter')
    await page.getByText('It was sent, and no answer came.').waitFor()
    await picture('failed')
    await person.click(page.getByRole('button', { name: 'Send again…' }))
    await picture('warning')
    await person.keys('Control+Enter')
    await page.locator('.request').getByText('completed, 201').first().waitFor()
  },
})

task({
  name: 'Who denied the payroll, and why, found in the trail',
  who: ada,
  route: '/history',
  async act(person, picture) {
    const { page } = person
    await person.click(page.locator('.record-what a', { hasText: '/v1/payroll' }).first())
    await page.locator('.request .digest').waitFor()
    await picture('request')
    await person.click(page.getByRole('link', { name: 'Entries in the audit trail' }))
    await page.locator('.record', { hasText: 'The amount of payment 317' }).first().waitFor()
  },
})

task({
  name: 'On a phone: a grant from the menu, for the next ten',
  who: ada,
  viewport: { width: 360, height: 740 },
  prepare: () => refund(60, 'c-99'),
  async act(person, picture) {
    const { page } = person
    await person.click(page.locator('.row a').first())
    await page.locator('.request .digest').waitFor()
    await picture('request')
    await person.click(page.getByRole('button', { name: 'More', exact: true }))
    await picture('menu')
    await person.click(page.getByRole('button', { name: 'Approve with a grant…' }))
    await picture('grant')
    await person.click(page.getByRole('button', { name: 'Approve and send' }))
    await page.locator('.request').getByText('completed, 201').first().waitFor()
  },
})

t.teardown(() => console.log(table(['task', 'steps', 'a person, s', 'the page, s'], rows)))
