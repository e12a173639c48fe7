import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import t from 'tap'
import { buildDebianPackage, debianPackage } from '../../packaging/deb.ts'
import { commandsOf, onFreshDebian } from '../fixtures/debian.ts'

buildDebianPackage()

t.test('the package of Debian has no error that lintian knows, and at most 45 MB', async t => {
  const { status, stdout } = spawnSync('lintian', ['--fail-on', 'error', debianPackage], { encoding: 'utf8' })
  t.equal(status, 0, stdout)
  t.ok(statSync(debianPackage).size <= 45e6, `${statSync(debianPackage).size} bytes`)
})

/** The state of the unit, as `systemctl` has it. */
const state = 'systemctl show agent-gateway --property ActiveState,StatusText,Result,ExecMainStatus'

t.test('the commands of its page install it, and systemd starts it only when it is told to', async t => {
  const said = await onFreshDebian(
    t,
    [debianPackage],
    `
${commandsOf('install.md', 'deb')}
echo "before: $(systemctl is-active agent-gateway || true)"
${commandsOf('install.md', 'deb start')}
${state}
stat -c '%U %a' /var/lib/agent-gateway/gateway.db
ps() { cat "/proc/$(systemctl show --property MainPID --value agent-gateway)/status"; }
ps | grep -E '^(CapEff|NoNewPrivs)'
${commandsOf('install.md', 'deb token')}
systemctl reload agent-gateway
until ${state} | grep -q 'StatusText=Serving'; do sleep 0.2; done
echo 'Sistem: {}' >> /etc/agent-gateway/gateway.yaml
systemctl reload agent-gateway || echo 'a mistake is not reloaded'
systemctl is-active agent-gateway
`,
  )
  t.match(said, 'no mistakes')
  t.match(said, 'before: inactive')
  t.match(said, /ActiveState=active/)
  t.match(said, 'agent-gateway 600')
  t.match(said, /^CapEff:\t0+$/m)
  t.match(said, /^NoNewPrivs:\t1$/m)
  t.match(said, /^[\w-]+\.[\w-]+\.[\w-]+$/m, 'a token')
  t.match(said, /a mistake is not reloaded\nactive/)
})

t.test('an upgrade restarts it and keeps a changed configuration, and purging leaves nothing', async t => {
  const said = await onFreshDebian(
    t,
    [debianPackage],
    `
dpkg -i /root/agent-gateway_*.deb
echo '# ours' >> /etc/agent-gateway/gateway.yaml
systemctl enable --now agent-gateway
before=$(systemctl show --property MainPID --value agent-gateway)
dpkg -i --force-confold /root/agent-gateway_*.deb
echo "after the upgrade: $(systemctl is-active agent-gateway)"
test "$before" != "$(systemctl show --property MainPID --value agent-gateway)"
tail -1 /etc/agent-gateway/gateway.yaml
dpkg --remove agent-gateway
echo "data: $(ls /var/lib/agent-gateway | grep -c gateway.db)"
dpkg --purge agent-gateway
echo "left: $(find / -xdev -path /proc -prune -o -path /root -prune -o -path /sys -prune -o -path /run -prune -o -name '*agent-gateway*' -print)"
`,
  )
  t.match(said, 'after the upgrade: active')
  t.match(said, '# ours')
  t.match(said, /data: [1-9]/)
  t.match(said, /left: \n/)
})
