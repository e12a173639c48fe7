/**
 * tokens.epoch in the data folder: what the keys of tokens are derived with once an older database was brought back, so
 * that no token of before is valid. There is none until then.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

const fileOf = (directory: string): string => join(directory, 'tokens.epoch')

export async function readEpoch(directory: string): Promise<string | undefined> {
  return (await readPrivateFile(fileOf(directory)))?.trim()
}

/** Makes every token void that was issued before. */
export async function renewEpoch(directory: string): Promise<void> {
  await writePrivateFile(fileOf(directory), `${randomBytes(16).toString('hex')}\n`, true)
}
