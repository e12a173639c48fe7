import { RE2JS } from 're2js'
import type { TextTest } from './patterns.ts'

/** A compiled pattern with its size, which bounds the time of a search: size times text length. */
export interface Regex {
  readonly test: TextTest
  readonly size: number
}

/** Compiles RE2 syntax (no look-around, no back references: linear time). A string is why it is refused. */
export function compileRegex(source: string, ignoreCase: boolean): Regex | string {
  try {
    const compiled = RE2JS.compile(source, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    return { test: text => compiled.test(text), size: compiled.programSize() }
  } catch (error) {
    return `not an RE2 pattern: ${error instanceof Error ? error.message : 'too complex'}`.slice(0, 200)
  }
}
