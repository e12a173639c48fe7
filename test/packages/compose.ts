import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'
import { commandsOf } from '../fixtures/debian.ts'
import { testdir } from '../fixtures/testdir.ts'

const file = fileURLToPath(new URL('../../deploy/compose/compose.yaml', import.meta.url))

t.test('Compose accepts the file with the commands of its page, and not without an agent', async t => {
  const cwd = testdir(t, { policies: {}, 'gateway.yaml': '' })
  copyFileSync(file, join(cwd, 'compose.yaml'))
  const compose = (script: string) => spawnSync('sh', ['-euc', script], { cwd, encoding: 'utf8' })
  // The Compose of Debian looks for the name of older versions.
  const named = 'export COMPOSE_FILE=compose.yaml\n'
  const { status, stderr } = compose(named + commandsOf('containers.md', 'compose'))
  t.equal(status, 0, stderr)
  t.match(compose(`${named}docker-compose config`).stderr, /set AGENT_IMAGE to the image of your agent/)
})

t.test('agents have no network but the one inside, and people are where agents cannot call', async t => {
  const { services, networks } = parse(readFileSync(file, 'utf8'))
  t.strictSame(services.agent.networks, ['agents'])
  t.equal(networks.agents.internal, true)
  t.notOk(networks.outside?.internal)
  const { environment, networks: own, ports } = services.gateway
  const people = environment.SYSTEM__SERVER__MANAGEMENT__HOST
  t.equal(people, own.outside.ipv4_address, 'not the address on the network of agents')
  t.equal(own.agents, null)
  t.strictSame(ports, ['127.0.0.1:7079:7079'])
})

t.test('the gateway of Compose has no right that it does not need, and only settings that exist', async t => {
  const { gateway } = parse(readFileSync(file, 'utf8')).services
  t.match(gateway, {
    read_only: true,
    user: '65532:65532',
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
  })
  const known = new Set([...settingsOf(schema)].map(([path]) => path.join('__').toUpperCase()))
  t.strictSame(
    Object.keys(gateway.environment).filter(name => !known.has(name)),
    [],
  )
})
