/** Installs what `npm run test:clients` calls and neither npm nor the packages of the system bring, below `.tap/`. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { python, pythonFolder } from './clients.ts'

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
