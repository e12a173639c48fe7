/** A thread that searches texts without WebAssembly, as `node --jitless` does. */
import { stripTypeScriptTypes } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'

class NoMemory {
  constructor() {
    throw new Error('there is no WebAssembly')
  }
}
// The reader of TypeScript keeps its own. It is loaded at its first use, which the compile cache may put off.
stripTypeScriptTypes('')
Reflect.set(globalThis, 'WebAssembly', { Memory: NoMemory })
const { findings } = await import('../../fixtures/findings.ts')
const { searched } = await import('../../../src/policy/detectors/simd.ts')

const texts: readonly string[] = workerData
parentPort?.postMessage({ isWithout: searched.length === 0, found: texts.map(findings) })
