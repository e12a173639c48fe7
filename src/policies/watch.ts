import { watch } from 'node:fs'

/** Milliseconds of quiet after a change before it is told: editors and deployments write in several steps. */
const DEBOUNCE_MS = 200

/**
 * Tells when something in a directory has changed, until it is closed. It does not keep the process alive.
 *
 * @throws the error of the file system when the directory cannot be watched
 */
export function watchFolder(
  directory: string,
  onChange: () => void,
  onError: (error: unknown) => void,
): { close(): void } {
  let timer: NodeJS.Timeout | undefined
  const watcher = watch(directory, { persistent: false }, () => {
    clearTimeout(timer)
    timer = setTimeout(onChange, DEBOUNCE_MS).unref()
  })
  watcher.on('error', onError)
  const close = () => {
    clearTimeout(timer)
    watcher.close()
  }
  return { close }
}
