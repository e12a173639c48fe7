/** Loaded into every thread of a gateway: thread 1 hangs as the file `hang` in its folder says. */
import { readFileSync, unlinkSync } from 'node:fs'
import { threadName } from 'node:worker_threads'

const hangs: Readonly<Record<string, () => void>> = {
  'in a loop': () => {
    for (;;);
  },
  // Nobody ever writes into it: a call of the system that no one can end.
  'in the system': () => void readFileSync('pipe'),
}

if (threadName === 'gateway-1') {
  const look = () => {
    let how: string
    try {
      how = readFileSync('hang', 'utf8')
      unlinkSync('hang')
    } catch {
      // Not yet.
      return
    }
    hangs[how]?.()
  }
  setInterval(look, 10).unref()
}
