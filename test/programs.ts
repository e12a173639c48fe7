/**
 * The programs that `npm run test:system` calls, or with the argument `packages` `npm run test:packages`, and npm does not bring.
 * Those that are missing are installed by root on Debian; elsewhere the command that does it is printed.
 */
import { spawnSync } from 'node:child_process'
import { packagePrograms, programs } from './fixtures/programs.ts'

const needed = process.argv[2] === 'packages' ? packagePrograms : programs

const succeeds = (script: string): boolean => spawnSync('sh', ['-c', script], { stdio: 'ignore' }).status === 0
const absent = (): readonly string[] => Object.keys(needed).filter(name => !succeeds(needed[name]!))

/** Whether `apt-get` ran to its end; what it says is worth reading otherwise. */
function aptGet(...args: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const { status, stdout, stderr } = spawnSync('apt-get', [...args], { env, encoding: 'utf8' })
  if (status !== 0) console.error(stdout, stderr)
  return status === 0
}

const missing = absent()
if (missing.length > 0) {
  const command = ['install', '-y', '-qq', '--no-install-recommends', ...missing]
  if (process.getuid?.() === 0 && succeeds('apt-get --version')) {
    console.log(`Installing ${missing.join(', ')}`)
    // The list of packages may be missing or old; another apt-get may be at work.
    const waits = '-oDPkg::Lock::Timeout=600'
    aptGet('update', '-qq', waits) && aptGet(...command, waits)
  }
  const left = absent()
  if (left.length > 0) {
    console.log(`Nothing ran: these tests call programs that are not here. Install them as root:`)
    console.log(`apt-get install ${left.join(' ')}`)
    console.log('0 passed, 1 failed')
    process.exitCode = 1
  }
}
