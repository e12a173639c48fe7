import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { goProgram } from '../fixtures/go.ts'
import { testdir } from '../fixtures/testdir.ts'

const actionlint = goProgram('actionlint', 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12')
const lint = (cwd: string) => spawnSync(actionlint, ['-no-color'], { cwd, encoding: 'utf8' })

t.test('actionlint has nothing against the workflows, and finds a text of others in a command', async t => {
  const { status, stdout } = lint(fileURLToPath(new URL('../..', import.meta.url)))
  t.equal(status, 0, stdout)
  const bad =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is an expression of GitHub Actions
    'on: issues\npermissions: {}\njobs: { a: { runs-on: ubuntu-24.04, steps: [{ run: "echo ${{ github.event.issue.title }}" }] } }\n'
  const folder = testdir(t, { '.git': {}, '.github': { workflows: { 'bad.yml': bad } } })
  t.match(lint(folder).stdout, 'potentially untrusted')
})
