/** The programs and libraries that are called under `agent-gateway run`: a new one is a row here, and often a script. */
import { fileURLToPath } from 'node:url'
import { type Mode, modes } from './modes.ts'

export interface Ask {
  readonly url: string
  readonly mode: Mode
  /** Path of the large file. */
  readonly file: string
}

export interface Client {
  /** Part of its paths. */
  readonly name: string
  /** How docs/forward-proxy.md names it. */
  readonly title: string
  /** The command that prints its version, first of all. */
  readonly version: readonly string[]
  readonly command: (ask: Ask) => readonly string[]
  /** All, if absent. */
  readonly modes?: readonly Mode[]
  /** Where it comes from: `basic` is there wherever `npm run test:system` runs, `more` is installed by `npm run test:clients`. */
  readonly from: 'basic' | 'more'
  /** It reads no variable, and calls through the gateway under `--lock` alone. */
  readonly onlyLocked?: boolean
}

const script = (name: string): string => fileURLToPath(new URL(`scripts/${name}`, import.meta.url))
const shell = (text: string, ...args: string[]): readonly string[] => [
  'bash',
  '-o',
  'pipefail',
  '-c',
  text,
  'sh',
  ...args,
]

const byNode = (name: string) => ({
  command: ({ url, mode, file }: Ask) => [process.execPath, script(`${name}.ts`), url, mode, file],
})
const versionOfPackage = (name: string) => [
  process.execPath,
  '-p',
  `JSON.parse(fs.readFileSync(module.findPackageJSON('${name}', '${script('calls.ts')}'))).version`,
]
export const python = '/usr/bin/python3'
/** Where `npm run test:clients` installs packages of Python. Without it those of the system are called. */
export const pythonFolder = fileURLToPath(new URL('../../../.tap/clients/python', import.meta.url))
const byPython = (module: string) => ({
  version: [python, '-c', `import importlib.metadata as m; print(m.version('${module}'))`],
  command: ({ url, mode, file }: Ask) => [python, script(`${module}_client.py`), url, mode, file],
})
/** What a protocol can do that transfers no files. */
const tools = ['plain', 'stream', 'refused', 'held', 'revoked'] as const
const measured = 'tee >(wc -c >&2) | sha256sum'

export const clients: readonly Client[] = [
  {
    ...{ name: 'curl', title: 'curl, libcurl', from: 'basic', version: ['curl', '--version'] },
    command({ url, mode, file }) {
      const curl = ['curl', '-sS', '--fail-with-body', '--no-buffer', url]
      if (mode === 'down') return shell(`"$@" | ${measured}`, ...curl)
      return [...curl, ...(mode === 'up' ? ['-T', file, '-X', 'POST'] : mode === 'held' ? ['-d', 'hello'] : [])]
    },
  },
  {
    ...{ name: 'wget', title: 'wget', from: 'basic', version: ['wget', '--version'], onlyLocked: true },
    command({ url, mode, file }) {
      const wget = ['wget', '-nv', '--tries=1', '--content-on-error', '-O-', url]
      if (mode === 'down') return shell(`"$@" | ${measured}`, ...wget)
      return [...wget, ...(mode === 'up' ? [`--post-file=${file}`] : mode === 'held' ? ['--post-data=hello'] : [])]
    },
  },
  { name: 'requests', title: 'Python requests', from: 'basic', ...byPython('requests') },
  { name: 'httpx', title: 'Python httpx', from: 'basic', ...byPython('httpx') },
  { name: 'aiohttp', title: 'Python aiohttp', from: 'basic', ...byPython('aiohttp') },
  {
    name: 'fetch',
    title: 'Node.js fetch',
    from: 'basic',
    version: [process.execPath, '--version'],
    ...byNode('fetch'),
  },
  { name: 'http', title: 'Node.js http', from: 'basic', version: [process.execPath, '--version'], ...byNode('http') },
  { name: 'undici', title: 'undici', from: 'basic', version: versionOfPackage('undici'), ...byNode('undici') },
  { name: 'axios', title: 'axios', from: 'basic', version: versionOfPackage('axios'), ...byNode('axios') },
  { name: 'got', title: 'got', from: 'basic', version: versionOfPackage('got'), ...byNode('got') },
  {
    name: 'openai',
    title: 'openai for Node.js',
    from: 'basic',
    version: versionOfPackage('openai'),
    ...byNode('openai'),
  },
  {
    ...{ name: 'anthropic', title: '@anthropic-ai/sdk for Node.js', from: 'basic' },
    ...{ version: versionOfPackage('@anthropic-ai/sdk'), ...byNode('anthropic') },
  },
  {
    ...{ name: 'mcp', title: '@modelcontextprotocol/sdk for Node.js', from: 'basic', modes: tools },
    ...{ version: versionOfPackage('@modelcontextprotocol/sdk'), ...byNode('mcp') },
  },
  { name: 'openai-python', title: 'openai for Python', from: 'more', ...byPython('openai') },
  { name: 'anthropic-python', title: 'anthropic for Python', from: 'more', ...byPython('anthropic') },
  { name: 'mcp-python', title: 'mcp for Python', from: 'more', modes: tools, ...byPython('mcp') },
]

export const modesOf = ({ modes: some }: Client): readonly Mode[] => some ?? (Object.keys(modes) as Mode[])
