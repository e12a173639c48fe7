/** Pushes in a browser, under the policy of the page. Threat T86. Chromium has no push service here: its answer is given by the test. */
import { createECDH } from 'node:crypto'
import t from 'tap'
import { startConsole } from '../fixtures/console.ts'
import { eventually } from '../fixtures/gateway.ts'

const bench = await startConsole(t, {
  config: { System: { PublicUrl: 'http://127.0.0.1' }, HumanInTheLoop: { Push: { Enabled: true } } },
})
const browser = createECDH('prime256v1')
browser.generateKeys()
const subscription = {
  endpoint: 'https://fcm.googleapis.com/fcm/send/example',
  keys: { p256dh: browser.getPublicKey('base64url'), auth: Buffer.alloc(16).toString('base64url') },
}

t.test('a reviewer switches pushes on, and the worker shows what a push says', async t => {
  const page = await bench.signedIn(t, bench.reviewer, { permissions: ['notifications'] })
  await page.evaluate(`{
    const given = ${JSON.stringify(subscription)}
    let kept = null
    const made = { ...given, toJSON: () => given, unsubscribe: async () => { kept = null; return true } }
    PushManager.prototype.subscribe = async () => (kept = made)
    PushManager.prototype.getSubscription = async () => kept
    // Without a window the browser asks nobody.
    Notification.requestPermission = async () => 'granted'
  }`)
  const cdp = await page.context().newCDPSession(page)
  const registered = new Promise<string>(resolve => {
    cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      if (registrations[0] !== undefined) resolve(registrations[0].registrationId)
    })
  })
  await cdp.send('ServiceWorker.enable')
  await page.locator('button.who').click()
  t.equal(await page.getByRole('button', { name: 'Make a code for Slack' }).count(), 0, 'there is no Slack app')
  await page.getByRole('button', { name: 'Switch notifications on' }).click()
  await page.getByRole('button', { name: 'Switch notifications off' }).waitFor()
  // This Chromium shows nobody a notification: the worker notes what it would show.
  const worker = page.context().serviceWorkers()[0] ?? (await page.context().waitForEvent('serviceworker'))
  await worker.evaluate(`{
    self.shown = []
    self.registration.showNotification = async (title, { body, data }) => void self.shown.push({ title, body, data })
  }`)
  await cdp.send('ServiceWorker.deliverPushMessage', {
    ...{ origin: bench.url, registrationId: await registered },
    data: JSON.stringify({ agent: 'shop-bot', rule: 'refunds', id: 'h1' }),
  })
  const shown = await eventually(
    () => worker.evaluate<readonly object[]>('self.shown'),
    all => all.length > 0,
  )
  t.strictSame(shown, [{ title: 'Review needed', body: 'shop-bot\nrefunds', data: 'h1' }])
  t.equal(await page.evaluate('navigator.serviceWorker.controller'), null, 'the worker controls no page')
  await page.getByRole('button', { name: 'Switch notifications off' }).click()
  await page.getByRole('button', { name: 'Switch notifications on' }).waitFor()
})
