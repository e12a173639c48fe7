import { execFile } from 'node:child_process'

/** Longest run of a program that prints a secret, milliseconds, and most bytes that it may print. */
const timeoutMs = 10_000
const maxBytes = 65_536

/**
 * The output of a program. No shell reads the arguments.
 *
 * Rejects with the reason, without what the program printed: an error message of a program may hold the secret.
 */
export function runCommand([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env, timeout: timeoutMs, maxBuffer: maxBytes, killSignal: 'SIGKILL', windowsHide: true } as const
    execFile(program, args, options, (error, output) => {
      if (error === null) resolve(output)
      else reject(new Error(`${program} ${problemOf(error)}`))
    })
  })
}

function problemOf(error: Error & { code?: unknown; killed?: unknown }): string {
  if (error.code === 'ENOENT') return 'does not exist'
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `printed more than ${maxBytes} bytes`
  if (error.killed === true) return `did not end within ${timeoutMs / 1_000} s`
  return typeof error.code === 'number' ? `ended with exit code ${error.code}` : `failed (${String(error.code)})`
}
