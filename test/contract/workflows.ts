import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8')
const workflows = globSync('.github/workflows/*.yml', { cwd: root })

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}
interface Job {
  readonly 'timeout-minutes'?: number
  readonly permissions?: Readonly<Record<string, string>>
  readonly environment?: string
  readonly steps: readonly Step[]
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

/** Jobs that may do more than read, and what. */
const rights: Readonly<Record<string, readonly string[]>> = {
  'codeql analyze': ['security-events'],
  'scorecard analyze': ['security-events', 'id-token'],
  'release npm': ['id-token'],
  'release image': ['packages', 'id-token', 'attestations'],
  'release publish': ['contents', 'id-token', 'attestations'],
}

t.test('jobs have no more rights than they need, and those that publish run no code of dependencies', async t => {
  const found: Record<string, readonly string[]> = {}
  for (const path of workflows) {
    const { name: workflow, jobs } = parse(read(path)) as Workflow & { readonly name: string }
    for (const [name, { permissions = {}, environment, steps }] of Object.entries(jobs)) {
      const more = Object.keys(permissions).filter(right => permissions[right] === 'write')
      if (more.length > 0) found[`${workflow} ${name}`] = more
      if (workflow !== 'release' || more.length === 0) continue
      t.equal(environment, 'release', 'a person agrees')
      for (const { run = '' } of steps) {
        const commands = run.match(/\b(?:npm|npx|node) .*/g) ?? []
        for (const command of commands) t.match(command, /^npm publish --ignore-scripts/, name)
      }
    }
  }
  t.strictSame(found, rights)
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
