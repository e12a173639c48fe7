/** Secrets by name: in the environment, in files, from programs and stores. */
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import type { SecretSetting } from '../config/credentials.ts'
import type { Environment } from '../config/environment.ts'
import type { Clock } from '../runtime/clock.ts'
import { readPrivateFile } from '../runtime/private-file.ts'

export interface SecretPlaces {
  readonly env: Environment
  readonly baseDirectory: string
}

/** Secrets by name, as the settings say where they are. */
export type Secrets = ReturnType<typeof createSecrets>

export interface SecretParts extends SecretPlaces {
  readonly readUrl: (setting: SecretSetting) => Promise<string>
  readonly clock: Pick<Clock, 'steady'>
}

export function createSecrets(settings: readonly SecretSetting[], parts: SecretParts) {
  const byName = new Map(settings.map(setting => [setting.Name, setting]))
  const marks = new Map<SecretSetting, string>()
  const looks = new Map<SecretSetting, StoreLook>()
  const read = async (setting: SecretSetting): Promise<string> => {
    const { Name = '', Encoding, Pointer } = setting
    const text = (await textOf(setting, parts)).replace(/\r?\n$/, '')
    const found = Pointer === undefined ? text : pointed(text, Pointer, Name)
    const value = Encoding === 'Base64' ? Buffer.from(found, 'base64').toString() : found
    if (value === '') throw new StartupError(`The secret ${Name} is empty.`)
    if (setting.FromUrl !== undefined) looks.set(setting, { value, at: parts.clock.steady(), isChanged: false })
    return value
  }
  /** Looks again at a store, beside what goes on. A look that fails counts as a change: the next reading says why. */
  const lookAgain = (setting: SecretSetting, last: StoreLook): void => {
    const now = parts.clock.steady()
    if (last.isChanged || now - last.at < setting.EverySeconds * 1_000) return
    last.at = now
    void read(setting).then(
      value => {
        if (value !== last.value) looks.set(setting, { ...last, isChanged: true })
      },
      () => {
        last.isChanged = true
      },
    )
  }
  return {
    /** The secret as it is now. Rejects with an error whose message names the source, never the secret. */
    async read(name: string): Promise<string> {
      const setting = byName.get(name)
      if (setting === undefined) throw new Error(`cannot happen: the secret ${name} is not configured`)
      return read(setting)
    },
    /** Names of the secrets whose files have changed since the last call. */
    async changed(): Promise<readonly string[]> {
      const found = await Promise.all(settings.map(async setting => [setting, await markOf(setting, parts)] as const))
      // The first look is made when all were read already.
      const changed = found.filter(([setting, mark]) => mark !== (marks.get(setting) ?? mark))
      for (const [setting, mark] of found) if (mark !== undefined) marks.set(setting, mark)
      const names = changed.flatMap(([{ Name }]) => Name ?? [])
      for (const [setting, last] of looks) {
        if (last.isChanged) names.push(setting.Name ?? '')
        last.isChanged = false
        lookAgain(setting, last)
      }
      return names
    },
  }
}

interface StoreLook {
  readonly value: string
  /** Steady milliseconds. */
  at: number
  isChanged: boolean
}

async function textOf(setting: SecretSetting, { env, baseDirectory, readUrl }: SecretParts): Promise<string> {
  const { Name, FromEnv, FromFile, FromCommand, FromUrl } = setting
  if (FromUrl !== undefined) return readUrl(setting)
  if (FromFile !== undefined) {
    const path = resolve(baseDirectory, FromFile)
    return (await readPrivateFile(path)) ?? missing(Name, path)
  }
  if (FromEnv !== undefined) return env[FromEnv] ?? missing(Name, `the environment variable ${FromEnv}`)
  return runCommand(FromCommand, env)
}

function missing(name: string | undefined, source: string): never {
  throw new StartupError(`The secret ${name}: ${source} does not exist.`)
}

/** What shows that a file is another one: mounted secrets are swapped by links. Undefined for other sources. */
async function markOf({ FromFile }: SecretSetting, { baseDirectory }: SecretPlaces): Promise<string | undefined> {
  if (FromFile === undefined) return undefined
  const path = resolve(baseDirectory, FromFile)
  try {
    const { ino, dev, size, mtimeMs, ctimeMs } = await stat(path)
    return [dev, ino, size, mtimeMs, ctimeMs].join(' ')
  } catch (error) {
    return `cannot be read: ${asError(error).code}`
  }
}

/** RFC 6901. */
function pointed(text: string, pointer: string, name: string): string {
  const found = pointer
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(memberOf, parsed(text, name))
  if (typeof found === 'string' || typeof found === 'number') return String(found)
  throw new StartupError(`The secret ${name} has no text at ${pointer}.`)
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new StartupError(`The secret ${name} is not JSON, which its Pointer needs.`)
  }
}

const memberOf = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined

/** Longest run of a program that prints a secret, milliseconds, and most bytes that it may print. */
const timeoutMs = 10_000
const maxBytes = 65_536

/**
 * The output of a program. No shell reads the arguments.
 *
 * Rejects with the reason, without what the program printed: an error message of a program may hold the secret.
 */
function runCommand([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
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
