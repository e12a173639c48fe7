import { execFileSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { checkService, commandsOf, onFreshDebian, serviceCommands } from '../fixtures/debian.ts'
import { testdir } from '../fixtures/testdir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const npm = (...args: readonly string[]) => execFileSync('npm', args, { cwd: root, encoding: 'utf8' }).trim()

/** The npm of this machine, and the Node.js that it runs on, which is not the one of this project. */
const [node, program] = ['/usr/bin/node', realpathSync('/usr/bin/npm')]
const authorities = '/etc/ssl/certs/ca-certificates.crt'

t.test('the commands of the page install the package with npm, and systemd runs it', async t => {
  // `npm run image:root` has built it.
  const folder = testdir(t)
  const name = npm('pack', '--ignore-scripts', '--silent', '--pack-destination', folder).split('\n').at(-1) ?? ''
  const files = [join(folder, name), join(root, 'gateway.yaml'), join(root, 'policies')]
  const lent = [node, dirname(dirname(program)), authorities]
  const said = await onFreshDebian(
    t,
    files,
    `
ln -s ${program} /usr/bin/npm
export npm_config_registry=${npm('config', 'get', 'registry')} npm_config_cafile=${authorities}
echo "before: $(node --version)"
${commandsOf('install.md', 'npm')}
echo "after: $(node --version)"
${serviceCommands()}
`,
    lent,
  )
  t.match(said, /^after: v26\./m)
  checkService(t, said)
})
