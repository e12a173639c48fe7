import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { commandText } from '../../packaging/deb.ts'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'

const pathOf = (name: string): string => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url))

t.test('the unit starts the Node.js and the package that the page installs', async t => {
  const page = readFileSync(fileURLToPath(new URL('../../docs/install.md', import.meta.url)), 'utf8')
  const [, prefix = '', version] = /npm install --prefix (\S+) node@(\d+) \.\/agent-gateway/.exec(page) ?? []
  const { engines, bin } = JSON.parse(
    readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
  )
  const [, node, main] =
    /^ExecStart=(\S+) \S+ (\S+) serve/m.exec(readFileSync(pathOf('agent-gateway.service'), 'utf8')) ?? []
  t.equal(node, `${prefix}/node_modules/node/bin/node`)
  t.equal(main, `${prefix}/node_modules/agent-gateway/${bin['agent-gateway']}`)
  t.ok(Number(version) >= Number(/\d+/.exec(engines.node)?.[0]))
})

t.test('the unit, the image and the command of the package tell the allocator the same', async t => {
  const toldBy = (name: string) => readFileSync(pathOf(name), 'utf8').match(/\bMALLOC_\w+=\d+/g)
  t.strictSame(toldBy('agent-gateway.service'), ['MALLOC_ARENA_MAX=2', 'MALLOC_MMAP_THRESHOLD_=131072'])
  t.strictSame(toldBy('image/Dockerfile'), toldBy('agent-gateway.service'))
  const toldTo = (command: string) => {
    const text = commandText().replace(/^exec .*$/m, 'env')
    const { stdout } = spawnSync('sh', ['-c', text, 'agent-gateway', command], { env: {}, encoding: 'utf8' })
    return stdout.match(/^MALLOC_.*$/gm)?.sort()
  }
  t.strictSame([toldTo('serve'), toldTo('run')], [toldBy('agent-gateway.service'), undefined])
})

t.test('the units set settings that exist', async t => {
  const known = new Set([...settingsOf(schema)].map(([path]) => path.join('__').toUpperCase()))
  for (const name of ['agent-gateway.service', 'fleet.conf']) {
    const set = [...readFileSync(pathOf(name), 'utf8').matchAll(/\b([A-Z]+(?:__[A-Z]+)+)=/g)].map(([, key]) => key!)
    t.ok(set.length > 0, name)
    t.strictSame(
      set.filter(key => !known.has(key.replace(/__FILE$/, ''))),
      [],
      name,
    )
  }
})

t.test('the chart has the version of the package, and its schema names exactly its values', async t => {
  const { version } = JSON.parse(readFileSync(pathOf('../package.json'), 'utf8'))
  const read = (name: string) => readFileSync(pathOf(`helm/agent-gateway/${name}`), 'utf8')
  t.match(parse(read('Chart.yaml')), { version, appVersion: version })
  const { properties } = JSON.parse(read('values.schema.json'))
  t.strictSame(Object.keys(properties).sort(), [...Object.keys(parse(read('values.yaml'))), 'global'].sort())
})
