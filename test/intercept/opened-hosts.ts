import t from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import { createOpenedHosts, type OpenedHostsSettings } from '../../src/intercept/opened-hosts.ts'

const settings: OpenedHostsSettings = { Https: 'Intercept', TunnelHosts: [], InterceptHosts: [], Http2Hosts: [] }
const at = (place: string) => {
  const [host = '', port = 443] = place.split(':')
  return createOrigin('https', host, Number(port))
}

t.test('all hosts are opened but those of TunnelHosts, at 443 unless they have a port', async t => {
  const { opens, mayCarryAny } = createOpenedHosts({
    ...settings,
    TunnelHosts: ['pinned.test', '*.bank.test', 'ssh.test:22', '.all.test:8443'],
  })
  const cases = {
    'pinned.test': [false, false],
    'pinned.test:8443': [true, false],
    'a.pinned.test': [true, false],
    'bank.test': [true, false],
    'a.bank.test': [false, false],
    'ssh.test:22': [false, true],
    'ssh.test': [true, false],
    'all.test:8443': [false, true],
    'a.all.test:8443': [false, true],
    'other.test': [true, false],
  }
  for (const [place, expected] of Object.entries(cases)) {
    t.strictSame([opens(at(place)), mayCarryAny(at(place))], expected, place)
  }
})

t.test('with Https: Tunnel none is opened but those of InterceptHosts', async t => {
  const { opens, mayCarryAny } = createOpenedHosts({ ...settings, Https: 'Tunnel', InterceptHosts: ['api.test'] })
  t.strictSame([opens(at('api.test')), opens(at('other.test')), opens(at('api.test:8443'))], [true, false, false])
  t.notOk(mayCarryAny(at('other.test:22')))
})
