import type { Clock } from '../clock.ts'
import { StartupError } from '../errors.ts'
import type { BookOptions, PolicyBook } from './book.ts'
import { createBook } from './book.ts'
import type { PolicyInput } from './entry.ts'
import type { PolicyFolder } from './files.ts'
import { readPolicyFolder } from './files.ts'
import { watchFolder } from './watch.ts'

export interface PoliciesOptions<P, C> extends BookOptions<P, C> {
  /** Policy:Directory, resolved. */
  readonly directory: string
  /** `Policies` of gateway.yaml. */
  readonly inline: readonly unknown[]
  readonly report: PolicyReport
}

/** Told of what happens to the policies while nobody waits for an answer. */
export interface PolicyReport {
  /** The policies in files are now these. */
  reloaded(names: readonly string[]): void
  /** Nothing was changed: a line for each reason. */
  rejected(lines: readonly string[]): void
}

export interface Policies<C> {
  readonly book: PolicyBook<C>
  /** Reads the directory anew (SIGHUP, or a change in it). False: there was a mistake, and all stays as it was. */
  reload(): Promise<boolean>
  close(): void
}

/**
 * Puts the policies of gateway.yaml, of the directory and of the store in force, and follows the directory. A directory
 * that is not there holds no policies.
 *
 * @throws StartupError with a line for each mistake in gateway.yaml or the directory
 */
export async function openPolicies<P, C>(options: PoliciesOptions<P, C>): Promise<Policies<C>> {
  const { directory, report } = options
  const book = createBook(options)
  const inline = inlineInputs(options.inline, options.clock)
  const changed = () => void reload()
  let watcher = tryWatch(directory, changed, report)

  const load = ({ inputs, lines }: PolicyFolder) => book.load([...inline, ...inputs], lines)

  async function reload(): Promise<boolean> {
    // A directory that was put in the place of the watched one is followed from here on.
    watcher.close()
    watcher = tryWatch(directory, changed, report)
    // A directory that is gone is a mistake here, other than at start: the policies in force stay.
    const lines = await readPolicyFolder(directory)
      .then(load)
      .catch((error: Error) => [error.message])
    if (lines.length > 0) report.rejected(lines)
    else report.reloaded(book.list().flatMap(entry => (entry.source === 'api' ? [] : [entry.document.name])))
    return lines.length === 0
  }

  const lines = await load(await readPolicyFolder(directory).catch(noFolder))
  if (lines.length > 0) {
    watcher.close()
    throw new StartupError(lines.join('\n'))
  }
  const lost = await book.restore()
  if (lost.length > 0) report.rejected(lost)
  return { book, reload, close: () => watcher.close() }
}

/** The policies as a gateway finds them at start, but for those of the API. */
export async function readFixedPolicies(
  from: Pick<PoliciesOptions<unknown, unknown>, 'directory' | 'inline' | 'clock'>,
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

/** Follows the directory if that can be; where it cannot, SIGHUP still reloads. */
function tryWatch(directory: string, onChange: () => void, report: PolicyReport): { close(): void } {
  const complain = (error: unknown) => report.rejected([`Policy:Directory is not watched: ${(error as Error).message}`])
  try {
    return watchFolder(directory, onChange, complain)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') complain(error)
    return { close() {} }
  }
}
