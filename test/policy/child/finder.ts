/** A thread that searches texts without WebAssembly, as `node --jitless` does. */
import { parentPort, workerData } from 'node:worker_threads'

class NoMemory {
  constructor() {
    throw new Error('there is no WebAssembly')
  }
}
// The reader of TypeScript was loaded before this, and keeps its own.
Reflect.set(globalThis, 'WebAssembly', { Memory: NoMemory })
const { findings } = await import('../../fixtures/findings.ts')
const { searched } = await import('../../../src/policy/detectors/simd.ts')

const texts: readonly string[] = workerData
parentPort?.postMessage({ isWithout: searched.length === 0, found: texts.map(findings) })
