import { cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { runMain, runToEnd, runTool } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))

/** The package as npm would publish it, unpacked, with its dependencies beside it. */
function installPackage(t: Test) {
  const folder = testdir(t, {})
  // In a copy: it builds dist/ again, from which other tests start gateways.
  const copy = join(folder, 'source')
  const left = new Set(['.git', '.tap', 'bench', 'build', 'dist', 'node_modules'].map(name => join(root, name)))
  // Of the tests, the build needs the script that writes the types of the console.
  const types = join(root, 'test/fixtures/console-types.ts')
  const isNeeded = (path: string) => !left.has(path) && (!path.startsWith(join(root, 'test')) || types.startsWith(path))
  cpSync(root, copy, { recursive: true, filter: isNeeded })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const text = runTool(['npm', 'pack', '--json', '--silent', '--pack-destination', folder], copy)
  const [{ filename, files }] = JSON.parse(text.slice(text.indexOf('[')))
  runTool(['tar', '-xf', filename], folder)
  symlinkSync(join(root, 'node_modules'), join(folder, 'package/node_modules'))
  const paths: string[] = files.map((file: { readonly path: string }) => file.path)
  return { folder: join(folder, 'package'), archive: join(folder, filename), files: paths }
}

t.test('the package holds what runs and what is read, and nothing else', async t => {
  const { folder, archive, files } = installPackage(t)
  const rest = files.filter(
    file => !/^(dist\/(?!swagger-ui|console).+\.js|dist\/console\/assets\/[\w-]+\.\w+|policies\/.+\.yaml)$/.test(file),
  )
  const expected = [
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'deploy/agent-gateway.service',
    'deploy/agent-gateway.socket',
    'deploy/agent@.service',
    'deploy/compose/compose.yaml',
    'deploy/fleet.conf',
    'deploy/grafana/agent-gateway.json',
    'deploy/haproxy.cfg',
    'deploy/image/Dockerfile',
    'deploy/kubernetes/sidecar.yaml',
    'deploy/notify-reload.conf',
    'deploy/prometheus/alerts-test.yaml',
    'deploy/prometheus/alerts.yaml',
    'dist/console/index.html',
    'dist/swagger-ui/LICENSE',
    'dist/swagger-ui/NOTICE',
    'dist/swagger-ui/favicon-32x32.png',
    'dist/swagger-ui/swagger-ui-bundle.js',
    'dist/swagger-ui/swagger-ui.css',
    ...readdirSync(join(root, 'docs')).map(name => `docs/${name}`),
    'gateway.schema.json',
    'gateway.yaml',
    'openapi.json',
    'policy-test.schema.json',
    'policy.schema.json',
    'prices.json',
    'package.json',
  ]
  t.strictSame(rest.sort(), expected.sort())
  t.ok(readFileSync(join(folder, 'dist/main.js'), 'utf8').startsWith('#!/usr/bin/env node\n'))

  await t.test('publint has no complaint', async t => {
    t.doesNotThrow(() => runTool(['publint', 'run', archive, '--strict'], folder))
  })

  await t.test('its command checks the shipped configuration and policies', async t => {
    const { code, out } = await runToEnd(t, ['check'], { cwd: folder, script: join(folder, 'dist/main.js') })
    t.equal(code, 0)
    t.match(out, /gateway\.yaml: no mistakes; policies: .*\bdefault\b/)
  })

  await t.test('its command serves, with its worker threads and its API document', async t => {
    const env = { SYSTEM__SERVER__HTTP__PORT: '0' }
    const run = runMain(t, ['serve'], { cwd: folder, env, script: join(folder, 'dist/main.js') })
    const [, url] = await run.shows(/Address +(\S+)/)
    t.match(await (await fetchDocumented(`${url}/health`)).json(), { status: 'Healthy' })
    t.strictSame(
      await (await fetchDocumented(`${url}/open-api/gateway/specifications.json`)).json(),
      readJson('openapi.json'),
    )
    for (const file of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png', 'initializer.js']) {
      t.equal((await fetchDocumented(`${url}/open-api/assets/${file}`)).status, 200, file)
    }
    const page = await (await fetchDocumented(`${url}/console/`)).text()
    const [, script] = /src="\.\/(assets\/[\w-]+\.js)"/.exec(page) ?? []
    t.equal((await fetchDocumented(`${url}/console/${script}`)).status, 200)
    run.child.kill('SIGTERM')
    t.equal(await run.ended, 0)
  })
})

t.test('every dependency has one exact version', async t => {
  const { dependencies, devDependencies } = readJson('package.json')
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    t.match(version, /^\d+\.\d+\.\d+(-beta\.\d+)?$/, name)
  }
})

t.test('the lock file names optional packages of all platforms: npm ci refuses one that does not', async t => {
  const { packages } = readJson('package-lock.json') as { packages: Record<string, { optionalDependencies?: object }> }
  for (const [place, { optionalDependencies = {} }] of Object.entries(packages)) {
    for (const name of Object.keys(optionalDependencies)) {
      t.ok(packages[`node_modules/${name}`] ?? packages[`${place}/node_modules/${name}`], `${place}: ${name}`)
    }
  }
})

t.test('the version of the package is that of the API document', async t => {
  t.equal(readJson('package.json').version, readJson('openapi.json').info.version)
})

t.test('the repository, its owners and the maintainer are those of package.json wherever they are named', async t => {
  const { repository, author } = readJson('package.json')
  const [, name = '', owner = ''] = /^git\+https:\/\/github\.com\/(([\w-]+)\/[\w.-]+)\.git$/.exec(repository.url) ?? []
  t.match(author, /^[^<>]+ <[^@\s]+@[^@\s]+>$/, 'name and address, as packages of Debian want them')
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const owners = [...read('.github/CODEOWNERS').matchAll(/@([\w-]+)\/[\w-]+/g)].map(([, of]) => of)
  t.strictSame(new Set(owners), new Set([owner]))
  const named = [...read('docs/install.md').matchAll(/(?:--repo |ghcr\.io\/)([\w-]+\/[\w.-]+)/g)].map(([, of]) => of)
  t.strictSame(new Set(named), new Set([name]))
  t.match(read('.github/workflows/release.yml'), `ghcr.io/\${GITHUB_REPOSITORY,,}`)
})
