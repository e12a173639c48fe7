/** Installs what `npm run test:clients` calls and neither npm nor the packages of the system bring, below `.tap/`. */
import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { agentFolder, goClient, python, pythonFolder, rustFolder, script } from './clients.ts'

function run(what: string, command: readonly [string, ...string[]]): void {
  console.log(`Installing ${what}`)
  const [file, ...args] = command
  const { status } = spawnSync(file, args, { stdio: 'inherit' })
  if (status === 0) return
  console.log(`Nothing ran: ${what} cannot be installed.\n0 passed, 1 failed`)
  process.exit(1)
}

const requirements = fileURLToPath(new URL('requirements.txt', import.meta.url))
const pip = [python, '-m', 'pip', 'install', '--quiet', '--root-user-action=ignore', '--upgrade'] as const
run('the clients in Python', [...pip, '--target', pythonFolder, '-r', requirements])

// Each brings a program of some hundred megabytes.
const agents = ['@anthropic-ai/claude-code@2.1.331', '@openai/codex@0.169.0']
run('coding agents', [
  'npm',
  'install',
  '--prefix',
  agentFolder,
  '--no-audit',
  '--no-fund',
  '--loglevel=error',
  ...agents,
])
run('the client in Go', ['go', 'build', '-o', goClient, script('main.go')])
// Cargo writes beside the sources.
cpSync(script('reqwest'), rustFolder, { recursive: true })
run('the client in Rust', [
  'cargo',
  'build',
  '--release',
  '--locked',
  '--quiet',
  '--manifest-path',
  `${rustFolder}/Cargo.toml`,
])
