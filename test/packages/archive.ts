import t from 'tap'
import { archive, buildArchive } from '../../packaging/archive.ts'
import { checkService, commandsOf, onFreshDebian, serviceCommands } from '../fixtures/debian.ts'

buildArchive()

t.test('the commands of the pages unpack the archive, and systemd runs it until it is told to stop', async t => {
  const said = await onFreshDebian(
    t,
    [archive],
    `
${commandsOf('install.md', 'archive')}
${serviceCommands()}
echo "others may write: $(find /opt/agent-gateway -perm /022 ! -type l | wc -l)"
echo "of others: $(find /opt/agent-gateway ! -user root | wc -l)"
`,
  )
  checkService(t, said)
  t.match(said, 'others may write: 0\nof others: 0\n')
})
