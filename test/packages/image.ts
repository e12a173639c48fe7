import { execFile, execFileSync, spawn } from 'node:child_process'
import { cpSync, createReadStream, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createGzip } from 'node:zlib'
import t, { type Test } from 'tap'
import { buildImage, imageArchive } from '../../packaging/image.ts'
import { repository } from '../../packaging/root.ts'
import { commandsOf } from '../fixtures/debian.ts'
import { startDocker } from '../fixtures/docker.ts'
import { testdir } from '../fixtures/testdir.ts'

const run = (file: string, ...args: readonly string[]): string => execFileSync(file, args, { encoding: 'utf8' })

buildImage()

interface ImageConfig {
  readonly config: {
    readonly User: string
    readonly Env: readonly string[]
    readonly Entrypoint: readonly string[]
    readonly Cmd: readonly string[]
    readonly Healthcheck: { readonly Test: readonly string[] }
  }
}
const { config }: ImageConfig = JSON.parse(
  run('skopeo', 'inspect', '--config', '--raw', `docker-archive:${imageArchive}`),
)

/** The files of the image, as a runtime lays them out. */
function unpack(t: Test): string {
  const folder = testdir(t)
  run('skopeo', 'copy', '--quiet', `docker-archive:${imageArchive}`, `oci:${folder}/oci:it`)
  run('umoci', 'unpack', '--image', `${folder}/oci:it`, `${folder}/bundle`)
  return join(folder, 'bundle/rootfs')
}

t.test('the image has at most 65 MB packed, and says who runs it and how healthy it is', async t => {
  let bytes = 0
  for await (const chunk of createReadStream(imageArchive).pipe(createGzip())) bytes += chunk.length
  t.ok(bytes <= 65e6, `${bytes} bytes`)
  t.equal(config.User, '65532:65532')
  t.strictSame(config.Healthcheck.Test.slice(0, 3), ['CMD', 'agent-gateway', 'health'])
})

const rootfs = unpack(t)

t.test(
  'it has no shell, no program with rights of its own, and nothing that its user may write but its data',
  async t => {
    const programs = run('find', rootfs, '-type', 'f', '-perm', '/111', '!', '-name', '*.so*').trim().split('\n')
    const modules = '/opt/agent-gateway/node_modules'
    t.strictSame(programs.map(path => path.slice(rootfs.length)).sort(), [
      `${modules}/agent-gateway/dist/main.js`,
      `${modules}/node/bin/node`,
    ])
    t.equal(run('find', rootfs, '-perm', '/6000', '!', '-type', 'd'), '')
    const others = run('find', rootfs, '(', '!', '-user', '0', '-o', '-perm', '/022', ')', '!', '-type', 'l')
    const writable = others
      .trim()
      .split('\n')
      .map(path => path.slice(rootfs.length))
    t.strictSame(
      writable.filter(path => !/^\/(tmp|var\/tmp|run\/lock)$/.test(path)),
      ['/var/lib/agent-gateway'],
    )
  },
)

t.test('scanners find the packages of Debian in it', async t => {
  const records = join(rootfs, 'var/lib/dpkg/status.d')
  t.match(readdirSync(records), ['base-files', 'libatomic1', 'libc6'])
  t.match(readFileSync(join(records, 'libc6'), 'utf8'), /^Package: libc6$[\s\S]*^Version: /m)
})

/** As `docker run --read-only --cap-drop ALL --security-opt no-new-privileges` with a volume for the data. */
const start = `
ip link set lo up
mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"
mount -t tmpfs -o uid=65532,gid=65532,mode=755 tmpfs "$0/var/lib/agent-gateway"
mount --bind /dev "$0/dev"; mount -t proc proc "$0/proc"
exec env -i "$@"
`
const asUser = ['/usr/bin/setpriv', '--no-new-privs', '/usr/sbin/chroot', '--userspec=65532:65532', '--groups=', rootfs]

t.test('it serves with a read-only root as a user without any right, is healthy, and ends with 0', async t => {
  const command = [...config.Env, ...asUser]
  const namespaces = ['--mount', '--net', 'sh', '-euc', start, rootfs]
  const child = spawn('unshare', [...namespaces, ...command, ...config.Entrypoint, ...config.Cmd], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = new Promise(resolve => child.on('exit', resolve))
  let said = ''
  for await (const chunk of child.stderr) {
    said += chunk
    if (said.includes('is ready')) break
  }
  t.match(said, 'is ready')
  const inside = async (...args: readonly string[]) => {
    const enter = ['--target', String(child.pid), '--mount', '--net', '/usr/bin/env', '-i', ...command]
    return promisify(execFile)('nsenter', [...enter, ...args]).then(
      ({ stdout }) => stdout,
      error => `${error.code} ${error.stdout}${error.stderr}`,
    )
  }
  const [, ...health] = config.Healthcheck.Test
  t.notMatch(await inside(...health), /^1 /)
  t.match(
    await inside('agent-gateway', 'token', '--config', '/etc/agent-gateway/gateway.yaml'),
    /^[\w-]+\.[\w-]+\.[\w-]+\n$/,
  )
  const write =
    'try { require("fs").writeFileSync("/etc/agent-gateway/x", "") } catch (error) { console.log(error.code) }'
  t.equal(await inside('node', '-e', write), 'EROFS\n')
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  t.match(status, /^Uid:\t65532\t65532\t65532\t65532$/m)
  t.match(status, /^CapEff:\t0+$/m)
  t.match(status, /^NoNewPrivs:\t1$/m)
  child.kill('SIGTERM')
  t.equal(await ended, 0)
})

const docker = await startDocker(t)

t.test('the commands of the page start it with Docker, which finds it healthy and stops it in time', async t => {
  const said = await docker.run(
    `${commandsOf('containers.md', 'docker load')}
${commandsOf('containers.md', 'docker')}
until docker ps | grep --quiet '(healthy)'; do sleep 1; done
docker kill --signal HUP gateway
docker exec gateway agent-gateway backup /var/lib/agent-gateway/backup --config /etc/agent-gateway/gateway.yaml
docker stop --time 40 gateway
docker inspect --format 'ended with {{.State.ExitCode}}' gateway`,
    repository,
  )
  t.match(said, /^[\w-]+\.[\w-]+\.[\w-]+$/m, 'a token')
  t.match(said, 'ended with 0')
})

/** An agent that calls the world as usual, then around the gateway, and then the API for people. */
const agent = `
const http = require('node:http')
const straight = url => new Promise(resolve => {
  const call = http.get(url, { agent: new http.Agent(), timeout: 2_000 }, answer => resolve(answer.statusCode))
  call.on('timeout', () => call.destroy()).on('error', () => resolve('unreachable'))
})
const world = 'http://172.31.70.9:9000/'
fetch(world).then(async answer => console.log('the agent', await answer.text(), await straight(world),
  await straight('http://gateway:7079/health'), await straight('http://gateway:7080/health/live')))
`
const world = `require('node:http').createServer((_, res) => res.end('reached the world')).listen(9000)`

t.test('with the commands of Compose an agent reaches the world through the gateway, and nothing else', async t => {
  const cwd = testdir(t, { 'agent.js': agent, 'world.js': world })
  for (const file of ['gateway.yaml', 'policies']) cpSync(join(repository, file), join(cwd, file), { recursive: true })
  cpSync(join(repository, 'deploy/compose/compose.yaml'), join(cwd, 'compose.yaml'))
  const said = await docker.run(
    `
build() { printf 'FROM agent-gateway:0.1.0\nCOPY %s /\nHEALTHCHECK NONE\nENV NODE_USE_ENV_PROXY=1\nENTRYPOINT ["node", "/%s"]\n' "$2" "$2" |
  docker build --quiet --tag "$1" --file - .; }
build my-agent:1 agent.js && build world world.js
${commandsOf('containers.md', 'compose')}
export COMPOSE_PROJECT_NAME=page
${commandsOf('containers.md', 'compose up')}
docker run --name world --detach --network page_outside --ip 172.31.70.9 world
token=$(docker compose exec gateway agent-gateway token --config /etc/agent-gateway/gateway.yaml)
post() { curl --silent --fail --header "Authorization: Bearer $token" --json "$2" "http://127.0.0.1:7079$1"; }
field() { grep --only-matching '"'$1'":"[^"]*"' | head -1 | cut --delimiter='"' --fields=4; }
id=$(post /agents '{"name": "page", "ownerId": "team"}' | field id)
export AGENT_KEY=$(post "/agents/$id/keys" '{"name": "page"}' | field key)
docker compose up --detach
until docker compose logs agent | grep 'the agent'; do sleep 1; done
docker compose exec gateway agent-gateway ca show --pem
docker rm --force world
docker compose down --volumes`,
    cwd,
  )
  t.match(said, 'http://127.0.0.1:7079/console/')
  t.match(said, 'the agent reached the world unreachable unreachable 200')
  t.match(said, '-----BEGIN CERTIFICATE-----')
})
