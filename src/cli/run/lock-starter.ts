/**
 * Runs inside of the lock, before the program: opens the port of the relay in the network there, and gives it to the process
 * outside, which serves it. It imports nothing of ours, so that it starts fast.
 */
import { createServer } from 'node:net'

const server = createServer().listen(Number(process.argv[2]), '127.0.0.1', () => {
  process.send?.('listening', server)
  // The port is in good hands.
  process.once('message', () => process.exit(0))
})
process.once('disconnect', () => process.exit(1))
