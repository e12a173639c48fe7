#!/usr/bin/env node
/**
 * The entry, and the only reader of the process: its arguments, environment, signals and exit code.
 * Everything else is imported only after the version of Node was checked.
 */
const oldest = 24

if (Number.parseInt(process.versions.node, 10) < oldest) {
  console.error(`agent-gateway needs Node.js ${oldest} or newer; this is ${process.versions.node}.`)
  process.exitCode = 1
} else {
  // Only the gateway has something to reload. It replaces this handler once it is loaded.
  const [command] = process.argv.slice(2)
  if (command === 'serve') process.on('SIGHUP', () => {})
  const { runCommand } = await import('./cli/commands.ts')
  // The reader of the output, such as head or less, may close it first.
  process.stdout.on('error', () => process.exit(0))
  // An error that cannot be reported must not end the gateway.
  process.stderr.on('error', () => {})
  process.exitCode = await runCommand({
    args: process.argv.slice(2),
    env: process.env,
    pid: process.pid,
    print: text => process.stdout.write(`${text}\n`),
    complain: text => process.stderr.write(`${text}\n`),
    onSignal: (name, handler) => process.on(name, handler),
    onExit: handler => process.on('exit', handler),
    exit: code => process.exit(code),
    kill: () => process.kill(process.pid, 'SIGKILL'),
  })
}
