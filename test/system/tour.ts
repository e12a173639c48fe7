import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { testdir } from '../fixtures/testdir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (name: string) => readFileSync(join(root, name), 'utf8')

/** The pages whose commands belong to the tour: they run in this order, in one shell. */
const toured = [
  read('README.md'),
  ...['running', 'metrics', 'agents', 'sign-in', 'budgets'].map(name => read(`docs/${name}.md`)),
].join('\n')

/** A command block of the tour, and what the page says that it prints; undefined where that depends on the upstream. */
interface Step {
  readonly script: string
  readonly printed: { readonly kind: 'text' | 'json'; readonly text: string } | undefined
}

const block = /<!-- tour(: any answer)? -->\n```sh\n([\s\S]*?)```\n(?:```(text|json)\n([\s\S]*?)```\n)?/g
const steps: readonly Step[] = [...toured.matchAll(block)].map(([, any, script = '', kind, text = '']) => ({
  script,
  printed: any === undefined ? { kind: kind === 'json' ? kind : 'text', text: text.trimEnd() } : undefined,
}))

/** A folder like a fresh clone, with data of its own. */
function folder(t: Test): string {
  const directory = testdir(t)
  for (const name of ['src', 'node_modules', 'package.json', 'openapi.json', 'policies']) {
    symlinkSync(join(root, name), join(directory, name))
  }
  // The reader of docs/budgets.md adds the first budget to the settings.
  const [, budget = ''] = /^## A first budget[\s\S]*?^```yaml\n([\s\S]*?)^```/m.exec(read('docs/budgets.md')) ?? []
  writeFileSync(join(directory, 'gateway.yaml'), `${read('gateway.yaml')}\n${budget}`)
  return directory
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function ready(gateway: ChildProcess): Promise<void> {
  let text = ''
  for await (const chunk of gateway.stderr!) {
    text += chunk
    if (text.includes('agent-gateway is ready')) return
  }
  throw new Error(`the gateway did not start: ${text}`)
}

/** `…` stands for anything. */
function pattern(printed: string): RegExp {
  const parts = printed.split('…').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`)
}

/** The names in a JSON answer; its ids and times are others each time. */
const namesIn = (text: string) => Object.keys(JSON.parse(text))

t.test(
  'the tour of the README and the pages works as pasted, and prints what it says',
  { timeout: 200_000 },
  async t => {
    const directory = folder(t)
    const [port, upstream] = [await freePort(), await freePort()]
    const env = { ...process.env, SYSTEM__SERVER__HTTP__PORT: String(port) }
    const gateway = spawn('node', ['src/main.ts', 'serve'], {
      cwd: directory,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    t.teardown(() => gateway.kill('SIGKILL'))
    await ready(gateway)

    // One shell for all steps, as for a reader; a mark on a line of its own tells where a step ends.
    const shell = spawn('bash', ['-s'], { cwd: directory, env, stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    t.teardown(() => process.kill(-shell.pid!, 'SIGKILL'))
    let text = ''
    shell.stdout.on('data', chunk => {
      text += chunk
    })
    for (const [index, step] of steps.entries()) {
      text = ''
      const script = step.script
        .replaceAll('7080', String(port))
        .replaceAll(/^agent-gateway /gm, 'npm run -s agent-gateway -- ')
        .replaceAll('https://api.example.com', 'http://127.0.0.1:9000')
        .replaceAll('9000', String(upstream))
      // The first step starts a server in the background; a reader takes longer than it does.
      shell.stdin.write(`${script}\n${index === 0 ? waitFor(upstream) : ''}\necho; echo "=== ${index}"\n`)
      while (!text.includes(`=== ${index}`)) await once(shell.stdout, 'data')
      const printed = text.slice(0, text.indexOf(`\n=== ${index}`)).trimEnd()
      if (step.printed === undefined) t.not(printed, '', step.script)
      else if (step.printed.kind === 'text') t.match(printed, pattern(step.printed.text), step.script)
      else t.strictSame(namesIn(printed), namesIn(step.printed.text), step.script)
    }
    t.ok(steps.length >= 13)
  },
)

const waitFor = (port: number) => `until (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null; do :; done`
