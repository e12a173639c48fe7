import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { asError } from '../base/as-error.ts'
import type { ParsedValue } from './value.ts'

/** Largest file with the value of a setting, bytes. */
const maxBytes = 65_536

/**
 * The text of a file that a variable NAME__FILE names: as containers and systemd hand over secrets. The end of the last line
 * does not belong to it.
 *
 * @param isSecret others must not be able to read it
 */
export function readValueFile(
  path: string,
  isSecret: boolean,
): { readonly text: string } | Extract<ParsedValue, { problem: string }> {
  try {
    // A pipe without a writer would block the start.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const { mode, size } = fstatSync(file)
      const problem = fileProblem(mode, size, isSecret)
      return problem === undefined ? { text: readFileSync(file, 'utf8').replace(/\r?\n$/, '') } : { problem }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const { code, message } = asError(error)
    return { problem: `${path} ${unreadable[code ?? ''] ?? `cannot be read (${code ?? message})`}` }
  }
}

/** What is wrong with a mounted file most often, and what to do. */
const unreadable: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist: mount it, or correct its path',
  EACCES: 'may not be read by the user of the gateway: give it the group of that user and the mode 0440',
}

function fileProblem(mode: number, size: number, isSecret: boolean): string | undefined {
  if ((mode & constants.S_IFMT) !== constants.S_IFREG) return 'must name a regular file'
  if (size > maxBytes) return `the file must have at most ${maxBytes} bytes`
  // A group may read it: Kubernetes gives mounted secrets to the group of the pod.
  return isSecret && (mode & 0o007) !== 0
    ? 'others can read this secret: give the file the mode 0400 or 0440'
    : undefined
}
