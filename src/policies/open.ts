import { asError } from '../base/as-error.ts'
import { StartupError } from '../base/refusals.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import type { Clock } from '../runtime/clock.ts'
import { type BookOptions, createBook, type PolicyBook } from './book.ts'
import { changesBetween, type PolicyChanges } from './changes.ts'
import { combine, type PolicyInput, type Prepared, prepareInput } from './entry.ts'
import { createFileCache, type FileCache, stampsOf } from './file-cache.ts'
import { isPolicyFile, isPolicyTestFile, type PolicyFolder, readPolicyFile, readPolicyFolder } from './files.ts'
import { createFollower } from './follow.ts'
import { createReloader, type Reloader } from './reload.ts'

export interface PoliciesOptions extends Omit<BookOptions, 'onUnreadable'> {
  /** Policy:Directory, resolved. */
  readonly directory: string
  /** `Policies` of gateway.yaml. */
  readonly inline: readonly unknown[]
  readonly report: PolicyReport
  /** Milliseconds between two looks at changed files; they are read after four that show the same. */
  readonly lookMs?: number
}

/** Receives the results of reloads. */
export interface PolicyReport {
  /** The policies of files and gateway.yaml are in force as they are there now. */
  reloaded(changes: PolicyChanges): void
  /** Nothing was changed: a line for each reason. */
  rejected(lines: readonly string[]): void
}

export interface Policies {
  readonly book: PolicyBook
  /** Reads what has changed in the directory (SIGHUP). False: there was a mistake, and nothing changed. */
  reload(): Promise<boolean>
  close(): void
}

/**
 * Puts the policies of gateway.yaml, of the directory and of the store in force, and follows the directory. A directory
 * that is not there holds no policies.
 *
 * @throws StartupError with a line for each mistake in gateway.yaml or the directory
 */
export async function openPolicies(options: PoliciesOptions): Promise<Policies> {
  const { directory, report, language, lookMs = 250 } = options
  const book = createBook({ ...options, onUnreadable: lines => report.rejected(lines) })
  const inline = inlineInputs(options.inline, options.clock)
  const prepared = await Promise.all(inline.map(input => prepareInput(language, input)))
  const files = policyFiles(directory, language)
  const follower = createFollower(directory, {
    isWanted,
    changed: () => reloader?.soon(),
    failed: error => report.rejected([`Policy:Directory is not watched: ${error.message}`]),
  })
  let reloader: Reloader | undefined
  let inForce = book.list()
  const look = () => lookAt(directory)
  const read = async () => {
    await follower.refresh()
    return files.read()
  }

  await follower.refresh()
  const stamp = await look()
  const missing: string[] = []
  const found = await files.read().catch(error => noFiles(error, missing))
  const lines = await book.load(combine([...prepared, ...found]))
  if (lines.length > 0) {
    follower.close()
    throw new StartupError(lines.join('\n'))
  }
  const unfollow = await book.follow()
  inForce = book.list()
  reloader = createReloader(
    {
      ...{ lookMs, look, read },
      load: changed => book.load(combine([...prepared, ...changed])),
      report(problems) {
        const before = inForce
        inForce = book.list()
        if (problems.length > 0) report.rejected(problems)
        else report.reloaded(changesBetween(before, inForce))
      },
    },
    { stamp, lines: missing },
  )
  const close = () => {
    unfollow()
    follower.close()
    reloader?.close()
  }
  return { book, reload: reloader.now, close }
}

const isWanted = (name: string) => isPolicyFile(name) || isPolicyTestFile(name)

function policyFiles(directory: string, language: LanguageOptions): FileCache<Prepared> {
  return createFileCache<Prepared>(directory, {
    isWanted: isPolicyFile,
    async load(path) {
      const file = await readPolicyFile(path)
      return 'document' in file ? prepareInput(language, file) : { lines: file }
    },
    failed: (path, error) => ({ lines: [`${path}: cannot be read: ${error.message}`] }),
  })
}

/** The state of every policy and test file as one text. */
async function lookAt(directory: string): Promise<string> {
  try {
    return [...(await stampsOf(directory, isWanted))].join('\n')
  } catch (error) {
    return asError(error).message
  }
}

/** A directory that is missing at start holds no policies; the report of a reload is kept. */
function noFiles(error: NodeJS.ErrnoException, missing: string[]): { readonly lines: readonly string[] }[] {
  if (error.code !== 'ENOENT') return [{ lines: [`Policy:Directory cannot be read: ${error.message}`] }]
  missing.push(error.message)
  return []
}

/** The policies as a gateway finds them at start, but for those of the API. */
export async function readFixedPolicies(
  from: Pick<PoliciesOptions, 'directory' | 'inline' | 'clock'>,
): Promise<PolicyFolder> {
  const { inputs, lines } = await readPolicyFolder(from.directory).catch(noFolder)
  return { inputs: [...inlineInputs(from.inline, from.clock), ...inputs], lines }
}

function inlineInputs(documents: readonly unknown[], clock: Clock): readonly PolicyInput[] {
  return documents.map((document, index) => ({
    source: 'config',
    document,
    createdAt: clock.now(),
    where: () => `gateway.yaml: Policies[${index}]`,
  }))
}

function noFolder(error: NodeJS.ErrnoException): PolicyFolder {
  if (error.code === 'ENOENT') return { inputs: [], lines: [] }
  return { inputs: [], lines: [`Policy:Directory cannot be read: ${error.message}`] }
}
