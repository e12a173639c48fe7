import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseYaml, placesIn } from '../config/yaml.ts'
import type { PolicyInput } from './entry.ts'

/** Tests of policies, which stand beside them. */
export function isPolicyTestFile(name: string): boolean {
  return /^[^.].*\.test\.ya?ml$/.test(name)
}

/** Largest policy file, bytes (policy-language section 8, E_LIMIT). */
const maxFileBytes = 8_388_608

/** The policies of a directory, or a line for each mistake. */
export interface PolicyFolder {
  readonly inputs: readonly PolicyInput[]
  readonly lines: readonly string[]
}

/**
 * Reads the policy files of a directory: `*.yaml` and `*.yml`, one policy each. Hidden files and tests of policies
 * (`*.test.yaml`) are skipped.
 *
 * @param directory also names it in messages
 * @throws the error of the file system when the directory cannot be read
 */
export async function readPolicyFolder(directory: string): Promise<PolicyFolder> {
  const names = (await readdir(directory)).filter(isPolicyFile).sort()
  return readPolicyFiles(names.map(name => join(directory, name)))
}

/**
 * Reads policy files, and those of directories.
 *
 * @throws the error of the file system when a directory cannot be read
 */
export async function readPolicyPaths(paths: readonly string[]): Promise<PolicyFolder> {
  const read = await Promise.all(
    paths.map(async path => {
      const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true
      return isFolder ? readPolicyFolder(path) : readPolicyFiles([path])
    }),
  )
  return { inputs: read.flatMap(({ inputs }) => inputs), lines: read.flatMap(({ lines }) => lines) }
}

async function readPolicyFiles(paths: readonly string[]): Promise<PolicyFolder> {
  const inputs: PolicyInput[] = []
  const lines: string[] = []
  for (const path of paths) {
    const read = await readPolicyFile(path).catch((error: Error) => [`${path}: cannot be read: ${error.message}`])
    if ('document' in read) inputs.push(read)
    else lines.push(...read)
  }
  return { inputs, lines }
}

export function isPolicyFile(name: string): boolean {
  return /^[^.].*\.ya?ml$/.test(name) && !isPolicyTestFile(name)
}

/** One policy, or a line for each mistake. @throws the error of the file system when it cannot be read */
export async function readPolicyFile(path: string): Promise<PolicyInput | readonly string[]> {
  const { size, mtimeMs } = await stat(path)
  if (size > maxFileBytes) return [`${path}: a policy file has at most ${maxFileBytes} bytes (E_LIMIT)`]
  const parsed = parseYaml(await readFile(path, 'utf8'))
  if ('problems' in parsed)
    return parsed.problems.map(({ line, column, message }) => `${path}:${line}:${column}: ${message} (E_YAML)`)
  return { source: 'file', document: parsed.value, createdAt: Math.floor(mtimeMs), where: placesIn(path, parsed) }
}
