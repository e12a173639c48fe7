import { setFlagsFromString } from 'node:v8'

/**
 * Flags of V8 for a gateway whose first thread alone serves. They belong to the process and take effect on what begins
 * later: call this before other threads start.
 */
export function saveMemory(): void {
  // Each function takes up to some MiB while V8 optimises it, and malloc keeps that memory for the thread that did it.
  setFlagsFromString('--concurrent-turbofan-max-threads=1')
  // MiB. The threads of storage and secrets leave little garbage, and let it grow to three times this.
  setFlagsFromString('--max-semi-space-size=2')
}
