import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { testdir } from '../fixtures/testdir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/lock-the-network.md'), 'utf8')

/** Rules of the page. */
const rules = (name: string): string => {
  const [, text] = new RegExp(`<!-- nftables: ${name} -->\\n\`\`\`text\\n([\\s\\S]*?)\`\`\``).exec(page) ?? []
  if (text === undefined) throw new Error(`the page has no rules ${name}`)
  return text
}

/** Listens on two ports, then says which of them a user reaches. */
const script = (uid: number): string => `
const net = require('node:net')
const ports = [7079, 7080, 9000]
let open = ports.length
for (const port of ports) net.createServer(socket => socket.end()).listen(port, '127.0.0.1', () => --open || call())
function call() {
  process.setgroups([]); process.setgid(${uid}); process.setuid(${uid})
  let left = ports.length
  const reached = []
  const done = () => { if (--left === 0) { console.log(reached.sort().join(' ')); process.exit() } }
  // Packets that are dropped get no answer.
  for (const port of ports) {
    const socket = net.connect(port, '127.0.0.1', () => { reached.push(port); socket.end(); done() }).on('error', done)
    socket.setTimeout(2_000, () => socket.destroy(new Error('dropped')))
  }
}
`

/** What a user reaches in a network of its own with the rules. */
function reached(rule: string, uid: number): string {
  const folder = testdir(t, { rules: rule })
  const enter = `ip link set lo up && nft --check --file rules && nft --file rules && exec "$0" -e "$1"`
  const args = ['--net', 'sh', '-euc', enter, process.execPath, script(uid)]
  return execFileSync('unshare', args, { cwd: folder, encoding: 'utf8' }).trim()
}

t.test('with the rules of the page the user of agents reaches the gateway alone, and others everything', async t => {
  t.equal(reached(rules('user'), 10_001), '7080')
  t.equal(reached(rules('user'), 10_002), '7079 7080 9000')
})

t.test('the rules for a router are valid', async t => {
  t.equal(reached(rules('router'), 10_001), '7079 7080 9000')
})

t.test('the sidecar lets the user of the gateway out, and the agent only within its pod', async t => {
  const [config] = parseAllDocuments(readFileSync(join(root, 'deploy/kubernetes/sidecar.yaml'), 'utf8'))
  const { data } = config!.toJS()
  // There is no interface but lo: its other ports stand for what is outside.
  const outside = data.rules.replace('oifname "lo" accept', 'oifname "lo" tcp dport 7079 accept')
  t.equal(reached(outside, 65_532), '7079 7080 9000')
  t.equal(reached(outside, 10_001), '7079')
  t.equal(reached(data.rules, 10_001), '7079 7080 9000', 'all of the pod')
})

t.test('the commands of the first day write secrets that only root reads', async t => {
  const [, commands = ''] =
    /<!-- production -->\n +```sh\n([\s\S]*?) +```/.exec(readFileSync(join(root, 'docs/production.md'), 'utf8')) ?? []
  const folder = testdir(t)
  mkdirSync(join(folder, 'etc'))
  execFileSync('sh', ['-euc', commands.replaceAll('/etc/agent-gateway', join(folder, 'etc'))])
  const file = join(folder, 'etc/secrets.env')
  t.equal(statSync(file).mode & 0o777, 0o600)
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  t.strictSame(
    lines.map(line => line.split('=')[0]),
    ['SECURITY__AGENTAUTH__TOKENISSUANCE__SECRET', 'SECURITY__SEALING__SECRET'],
  )
})
