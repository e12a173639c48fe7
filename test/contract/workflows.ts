import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8')
const workflows = globSync('.github/workflows/*.yml', { cwd: root })

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, { readonly 'timeout-minutes'?: number; readonly steps: readonly Step[] }>>
}
interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}

t.test('actions are pinned by commit, with their version beside it', async t => {
  for (const path of workflows) {
    for (const [line] of read(path).matchAll(/^.*\buses:.*$/gm)) t.match(line, /@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, path)
  }
  t.ok(workflows.length > 0)
})

t.test('workflows may only read, keep no credentials, end in time, and run no text of others', async t => {
  for (const path of workflows) {
    const { permissions, jobs }: Workflow = parse(read(path))
    t.strictSame(permissions, { contents: 'read' }, path)
    for (const [name, { steps, ...job }] of Object.entries(jobs)) {
      t.ok(job['timeout-minutes'], `${path}: ${name}`)
      for (const step of steps) {
        if (step.uses?.startsWith('actions/checkout@')) t.equal(step.with?.['persist-credentials'], false, name)
        t.notMatch(step.run ?? '', /\$\{\{/, name)
      }
    }
  }
})

t.test('CI runs the commands that the page for contributors names', async t => {
  const runs = workflows.flatMap(path => {
    const { jobs }: Workflow = parse(read(path))
    return Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = [] }) => run))
  })
  const { scripts } = JSON.parse(read('package.json'))
  for (const command of ['npm test', 'npm run test:system']) {
    t.ok(read('docs/contributing.md').includes(command), command)
    t.ok(
      runs.some(run => run.includes(command)),
      command,
    )
    t.ok(scripts[command.split(/ (?:run )?/)[1] ?? ''], command)
  }
})

t.test('every folder with packages of its own is kept up to date', async t => {
  const { updates } = parse(read('.github/dependabot.yml'))
  const { directories } = updates.find(
    (update: { 'package-ecosystem': string }) => update['package-ecosystem'] === 'npm',
  )
  const locked = globSync('**/package-lock.json', { cwd: root, exclude: ['**/node_modules/**'] })
  t.strictSame([...directories].sort(), locked.map(path => `/${path.replace(/\/?package-lock\.json$/, '')}`).sort())
})
