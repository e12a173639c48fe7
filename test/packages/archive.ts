import t from 'tap'
import { archive, buildArchive } from '../../packaging/archive.ts'
import { commandsOf, onFreshDebian } from '../fixtures/debian.ts'

buildArchive()

t.test('the commands of the pages unpack the archive, and systemd runs it until it is told to stop', async t => {
  const said = await onFreshDebian(
    t,
    [archive],
    `
${commandsOf('install.md', 'archive')}
${commandsOf('systemd.md', 'systemd')}
cd /var/tmp
agent-gateway health --config /etc/agent-gateway/gateway.yaml
${commandsOf('systemd.md', 'systemd token')}
systemctl stop agent-gateway
systemctl show agent-gateway --property Result,ExecMainStatus
echo "others may write: $(find /opt/agent-gateway -perm /022 ! -type l | wc -l)"
echo "of others: $(find /opt/agent-gateway ! -user root | wc -l)"
`,
  )
  t.match(said, 'no mistakes')
  t.match(said, /^[\w-]+\.[\w-]+\.[\w-]+$/m, 'a token')
  t.match(said, 'Result=success')
  t.match(said, 'ExecMainStatus=0')
  t.match(said, 'others may write: 0\nof others: 0\n')
})
