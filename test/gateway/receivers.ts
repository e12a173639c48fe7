import t from 'tap'
import { checkHooks } from '../../src/gateway/receivers.ts'
import { testConfig } from '../fixtures/gateway.ts'

t.test('a webhook that Egress refuses without a look-up stops the start', async t => {
  const check = (host: string) =>
    checkHooks(
      testConfig({
        Egress: { DenyHosts: ['denied.example'] },
        HumanInTheLoop: { Webhooks: [{ Url: `http://${host}/x` }] },
      }),
    )
  for (const host of ['hook.example', '10.0.0.1']) t.doesNotThrow(() => check(host), host)
  const refused = { name: 'StartupError', message: /^HumanInTheLoop:Webhooks\[0\]:Url: Egress refuses/ }
  for (const host of ['denied.example', 'denied.example.', '169.254.169.254', '2852039166', '[fe80::1]']) {
    t.throws(() => check(host), refused, host)
  }
})
