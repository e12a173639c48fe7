import t from 'tap'
import { archive, buildArchive } from '../../packaging/archive.ts'
import { commandsOf, freshDebian } from '../fixtures/debian.ts'

buildArchive()

t.test('the commands of the page unpack the archive, and the gateway serves', async t => {
  const { inside } = await freshDebian(t, [archive])
  const said = await inside(`
${commandsOf('install.md', 'archive')}
cd /var/tmp
agent-gateway serve --config /etc/agent-gateway/gateway.yaml >/root/log 2>&1 &
until agent-gateway health --config /etc/agent-gateway/gateway.yaml 2>/dev/null; do kill -0 $! || cat /root/log; sleep 0.2; done
kill $!
wait $! && echo "ended with 0"
find /opt/agent-gateway -perm /022 ! -type l | wc -l
find /opt/agent-gateway ! -user root | wc -l
`)
  t.match(said, 'no mistakes')
  t.match(said, 'ended with 0\n0\n0\n')
})
