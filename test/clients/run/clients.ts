/** The programs and libraries that are called under `agent-gateway run`: a new one is a row here, and often a script. */
import { homedir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { isStreamed, type Mode, modes } from './modes.ts'

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
  /** It shows no part of an answer before the end. */
  readonly isSilent?: true
  /** It reads no variable, and calls through the gateway under `--lock` alone. */
  readonly onlyLocked?: boolean
}

const installed = fileURLToPath(new URL('../../../.tap/clients', import.meta.url))
/** Where `npm run test:clients` installs what it builds and coding agents. */
export const goClient = `${installed}/go-client`
export const rustFolder = `${installed}/reqwest`
export const agentFolder = `${installed}/agents`
const agent = (name: string): string => `${agentFolder}/node_modules/.bin/${name}`
export const script = (name: string): string => fileURLToPath(new URL(`scripts/${name}`, import.meta.url))
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
  `JSON.parse(fs.readFileSync(require('node:module').findPackageJSON('${name}', '${script('calls.ts')}'))).version`,
]
export const python = '/usr/bin/python3'
/** Where `npm run test:clients` installs packages of Python. Without it those of the system are called. */
export const pythonFolder = `${installed}/python`
const byPython = (module: string) => ({
  version: [python, '-c', `import importlib.metadata as m; print(m.version('${module}'))`],
  command: ({ url, mode, file }: Ask) => [python, script(`${module}_client.py`), url, mode, file],
})
/** What a protocol can do that transfers no files. */
const tools = ['plain', 'stream', 'refused', 'held', 'revoked'] as const
/** What those can do that install packages: only so they show nothing before the end. */
const installing = { isSilent: true } as const
export const wheel = 'hello_gateway-1.0-py3-none-any.whl'
const sum = (file: string): string => `stat -c %s ${file} && sha256sum ${file}`
/** Where rustup brings it, it looks for the toolchain at home. */
const cargo = ['env', `RUSTUP_HOME=${process.env['RUSTUP_HOME'] ?? `${homedir()}/.rustup`}`, 'cargo']
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
  {
    ...{ name: 'git', title: 'git', from: 'basic', version: ['git', '--version'] },
    ...{ modes: ['plain', 'stream', 'refused', 'held', 'up', 'revoked'], isSilent: true },
    command({ url, mode, file }) {
      const clone = `git clone --quiet "${url}/code.git" clone && cd clone && cat hello.txt`
      if (mode !== 'held' && mode !== 'up') return shell(clone)
      const push = 'git add . && git -c user.name=a -c user.email=a@b commit -qm more && git push --quiet'
      if (mode === 'held') return shell(`${clone} && echo more > more.txt && ${push}`)
      const again = `git clone --quiet "${url}/code.git" again && cd again && ${sum('large.bin')}`
      return shell(`${clone} && cp "${file}" large.bin && ${push} && ${again}`)
    },
  },
  {
    ...{
      name: 'skopeo',
      title: 'skopeo, podman, docker',
      from: 'basic',
      version: ['skopeo', '--version'],
      ...installing,
    },
    command({ url, mode }) {
      const image = `docker://${url.replace('https://', '')}:latest`
      if (mode === 'up') {
        const copy = 'skopeo --insecure-policy copy --quiet'
        const push = `${copy} --preserve-digests --dest-creds a:b dir:out "${image.replace(/latest$/, 'mine')}"`
        return shell(`${copy} "${image}" dir:out && ${push} && curl -sS "${url}/pushed"`)
      }
      if (mode !== 'down' && !isStreamed(mode)) return ['skopeo', 'inspect', '--raw', image]
      const copy = `skopeo --insecure-policy copy --quiet "${image}" dir:out && cd out`
      return shell(`${copy} && cat manifest.json && ${sum('"$(ls -S | head -1)"')}`)
    },
  },
  { name: 'requests', title: 'Python requests', from: 'basic', ...byPython('requests') },
  { name: 'httpx', title: 'Python httpx', from: 'basic', ...byPython('httpx') },
  { name: 'aiohttp', title: 'Python aiohttp', from: 'basic', ...byPython('aiohttp') },
  {
    ...{
      name: 'pip',
      title: 'pip',
      from: 'basic',
      version: [python, '-m', 'pip', '--version'],
      ...{ ...installing, modes: ['plain', 'stream', 'refused', 'held', 'down', 'revoked'] },
    },
    command({ url, mode }) {
      // Only so it says that an index refused.
      const options = `${mode === 'refused' ? '-vv' : '--quiet'} --no-input --no-cache-dir --no-deps --disable-pip-version-check --target .`
      const install = `${python} -m pip install ${options} --index-url "${url}/simple/" hello-gateway`
      return shell(`${install} && ${python} -c 'import hello_gateway' && ${sum('hello_gateway/large.bin')}`)
    },
  },
  {
    ...{ name: 'twine', title: 'twine', from: 'more', modes: ['plain', 'refused', 'held', 'up'] },
    version: byPython('twine').version,
    command({ url, mode, file }) {
      const upload = `${python} -m twine upload --verbose --non-interactive --disable-progress-bar -u a -p b`
      const made = `${python} ${script('wheel.py')} ${wheel} "${mode === 'up' ? file : script('wheel.py')}"`
      return shell(`${made} && ${upload} --repository-url "${url}/legacy/" ${wheel}`)
    },
  },
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
    ...{
      name: 'npm',
      title: 'npm',
      from: 'basic',
      version: ['npm', '--version'],
      ...installing,
    },
    command({ url, mode, file }) {
      if (mode === 'up') {
        const made = `cp "${file}" large.bin && echo '{"name":"hello-gateway","version":"1.0.0"}' > package.json`
        const token = `echo '${url.replace('https:', '')}/npm/:_authToken=x' > .npmrc`
        const publish = `npm publish --silent --fetch-retries=0 --registry "${url}/npm/"`
        return shell(`${made} && ${token} && ${publish} && curl -sS "${url}/published"`)
      }
      const install = `npm install --no-audit --no-fund --fetch-retries=0 --registry "${url}/npm/" hello-gateway`
      const folder = 'node_modules/hello-gateway'
      return shell(
        `echo {} > package.json && ${install} && ${process.execPath} ${folder} && ${sum(`${folder}/large.bin`)}`,
      )
    },
  },
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
  { name: 'boto3', title: 'boto3', from: 'more', ...byPython('boto3') },
  {
    ...{ name: 'cargo', title: 'cargo', from: 'more', version: [...cargo, '--version'], ...installing },
    command({ url, mode, file }) {
      const home = 'CARGO_HOME=$PWD/home CARGO_NET_RETRY=0'
      const name = mode === 'up' ? 'hello-gateway' : 'a'
      const dependencies = mode === 'up' ? '' : `[dependencies]\nhello-gateway = { version = "1", registry = "r" }\n`
      const toml = `[package]\nname = "${name}"\nversion = "1.0.0"\nlicense = "MIT"\ndescription = "a"\n${dependencies}`
      const registry = `[registries.r]\nindex = "sparse+${url}/cargo/"\n`
      const project = `mkdir -p src .cargo && touch src/lib.rs && printf '${toml}' > Cargo.toml && printf '${registry}' > .cargo/config.toml`
      if (mode === 'up') {
        const publish = `CARGO_REGISTRIES_R_TOKEN=x ${cargo.join(' ')} publish --quiet --registry r --no-verify --allow-dirty`
        return shell(`${project} && cp "${file}" large.bin && ${home} ${publish} && curl -sS "${url}/published"`)
      }
      const folder = 'vendor/hello-gateway'
      return shell(
        `${project} && ${home} ${cargo.join(' ')} vendor >/dev/null && cat ${folder}/lib.rs && ${sum(`${folder}/large.bin`)}`,
      )
    },
  },
  {
    ...{ name: 'reqwest', title: 'reqwest', from: 'more' },
    version: shell(`sed -n '/^name = "reqwest"$/{n;p}' ${rustFolder}/Cargo.lock`),
    command({ url, mode, file }) {
      const client = [`${rustFolder}/target/release/reqwest-client`, url, mode, file]
      return mode === 'down' ? shell(`"$@" | ${measured}`, ...client) : client
    },
  },
  {
    ...{ name: 'go', title: 'Go net/http', from: 'more', version: ['go', 'version'] },
    command: ({ url, mode, file }) => [goClient, url, mode, file],
  },
  {
    ...{
      name: 'java',
      title: 'Java HttpClient',
      from: 'more',
      version: ['env', '-u', 'JAVA_TOOL_OPTIONS', 'java', '--version'],
      onlyLocked: true,
    },
    command: ({ url, mode, file }) => ['java', script('Calls.java'), url, mode, file],
  },
  {
    ...{ name: 'claude-code', title: '@anthropic-ai/claude-code', from: 'more', modes: [...tools, 'down'] },
    version: [agent('claude'), '--version'],
    command({ url, mode }) {
      const how = isStreamed(mode) ? ['--output-format', 'stream-json', '--verbose', '--include-partial-messages'] : []
      const env = [
        `ANTHROPIC_BASE_URL=${url}`,
        'ANTHROPIC_API_KEY=unused',
        'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1',
        'CLAUDE_CODE_MAX_RETRIES=0',
      ]
      const claude = ['env', ...env, agent('claude'), '-p']
      if (mode === 'down') return shell(`"$@" | base64 -d | ${measured}`, ...claude, 'hello')
      return [...claude, 'hello', ...how]
    },
  },
  {
    ...{ name: 'codex', title: '@openai/codex', from: 'more', modes: tools, isSilent: true },
    version: [agent('codex'), '--version'],
    command({ url }) {
      const provider = { name: 'test', base_url: `${url}/v1`, wire_api: 'responses', stream_max_retries: 0 }
      const settings = Object.entries(provider).map(
        ([name, value]) => `model_providers.test.${name}=${JSON.stringify(value)}`,
      )
      const options = [...settings, 'model_provider="test"'].flatMap(setting => ['-c', setting])
      return [agent('codex'), 'exec', '--skip-git-repo-check', ...options, '-m', 'm', 'hello']
    },
  },
]

export const modesOf = ({ modes: some }: Client): readonly Mode[] => some ?? (Object.keys(modes) as Mode[])
