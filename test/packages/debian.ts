import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import t from 'tap'
import { buildDebianPackage, debianPackage } from '../../packaging/deb.ts'
import { commandsOf, freshDebian } from '../fixtures/debian.ts'

buildDebianPackage()

t.test('the package of Debian has no error that lintian knows, and at most 45 MB', async t => {
  const { status, stdout } = spawnSync('lintian', ['--fail-on', 'error', debianPackage], { encoding: 'utf8' })
  t.equal(status, 0, stdout)
  t.ok(statSync(debianPackage).size <= 45e6, `${statSync(debianPackage).size} bytes`)
})

/** Runs the unit's command as its user. The chroot has no systemd: the lines are those of the unit. */
const serve = `
unit() { sed -n "s/^$1=//p" /lib/systemd/system/agent-gateway.service; }
start() {
  install -d -o agent-gateway -g agent-gateway -m 700 /var/lib/agent-gateway
  setpriv --reuid "$(unit User)" --regid agent-gateway --clear-groups --no-new-privs \\
    env $(unit Environment) $(unit ExecStart) >/root/log 2>&1 &
  until agent-gateway health --config /etc/agent-gateway/gateway.yaml 2>/root/health; do kill -0 $! || cat /root/log; sleep 0.2; done
}
`

t.test('the commands of its page install it, and it serves only when it is told to', async t => {
  const { inside } = await freshDebian(t, [debianPackage])
  const said = await inside(`
${commandsOf('install.md', 'deb')}
echo "processes: $(cat /proc/[0-9]*/comm | grep -c node || true)"
id agent-gateway
${serve}
start
${commandsOf('install.md', 'deb token')}
stat -c '%U %a' /var/lib/agent-gateway/gateway.db
`)
  t.match(said, 'no mistakes')
  t.match(said, 'processes: 0')
  t.match(said, /uid=\d+\(agent-gateway\)/)
  t.match(said, /^[\w-]+\.[\w-]+\.[\w-]+$/m, 'a token')
  t.match(said, 'agent-gateway 600')
})

t.test('an upgrade keeps a changed configuration, and purging leaves nothing', async t => {
  const { inside } = await freshDebian(t, [debianPackage])
  const said = await inside(`
dpkg -i /root/agent-gateway_*.deb
echo '# ours' >> /etc/agent-gateway/gateway.yaml
${serve}
start
kill $!; wait $! || true
dpkg -i --force-confold /root/agent-gateway_*.deb
tail -1 /etc/agent-gateway/gateway.yaml
dpkg --remove agent-gateway
echo "data: $(ls /var/lib/agent-gateway | grep -c gateway.db)"
dpkg --purge agent-gateway
echo "left: $(find / -xdev -path /proc -prune -o -path /root -prune -o -name '*agent-gateway*' -print)"
`)
  t.match(said, '# ours')
  t.match(said, /data: [1-9]/)
  t.match(said, /left: \n/)
})
