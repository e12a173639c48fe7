/** The filter of system calls, run as the kernel would run it. Threat T74. */
import t from 'tap'
import { withoutUnixSockets } from '../../../src/cli/run/seccomp.ts'

const x64 = 0xc000003e
const allow = 0x7fff0000
const noFamily = 0x00050000 + 97
const noCall = 0x00050000 + 38

interface Call {
  readonly number: number
  readonly architecture?: number
  readonly args?: readonly number[]
}

/** What a filter answers to a call: an interpreter of the few instructions that it may have. */
function answerOf(filter: Buffer, { number, architecture = x64, args = [] }: Call): number {
  const words = new Map([[0, number], [4, architecture], ...args.map((arg, index) => [16 + 8 * index, arg] as const)])
  let value = 0
  for (let at = 0; at < filter.length; at += 8) {
    const [code, k] = [filter.readUInt16LE(at), filter.readUInt32LE(at + 4)]
    const [yes, no] = [8 * filter.readUInt8(at + 2), 8 * filter.readUInt8(at + 3)]
    if (code === 0x20) value = words.get(k) ?? 0
    else if (code === 0x54) value &= k
    else if (code === 0x15) at += value === k ? yes : no
    else if (code === 0x35) at += value >= k ? yes : no
    else if (code === 0x06) return k
    else throw new Error(`an unknown instruction: ${code}`)
  }
  throw new Error('no answer')
}

t.test('unix sockets, those of virtual machines and rings are refused; all else is as before', async t => {
  const filter = withoutUnixSockets('x64')!
  const cases: readonly (readonly [string, Call, number])[] = [
    ['a unix socket', { number: 41, args: [1, 1] }, noFamily],
    ['vsock', { number: 41, args: [40, 1] }, noFamily],
    ['TCP', { number: 41, args: [2, 1] }, allow],
    ['IPv6', { number: 41, args: [10, 1] }, allow],
    ['a pair of streams', { number: 53, args: [1, 0x80801] }, allow],
    ['a pair of packets', { number: 53, args: [1, 5] }, allow],
    ['a pair of datagrams', { number: 53, args: [1, 0x80802] }, noFamily],
    ['a ring', { number: 425 }, noCall],
    ['read', { number: 0 }, allow],
    ['socket by another way of the processor', { number: 0x4000_0000 + 41, args: [1, 1] }, noCall],
    ['a call of 32 bits', { number: 359, architecture: 0x40000003, args: [1, 1] }, noCall],
  ]
  for (const [name, call, expected] of cases) t.equal(answerOf(filter, call), expected, name)
})

t.test('it is there for ARM too, and for no other processor', async t => {
  const filter = withoutUnixSockets('arm64')!
  const architecture = 0xc00000b7
  t.equal(answerOf(filter, { number: 198, architecture, args: [1, 1] }), noFamily)
  t.equal(answerOf(filter, { number: 199, architecture, args: [1, 2] }), noFamily)
  t.equal(answerOf(filter, { number: 41, architecture, args: [1, 1] }), allow)
  t.equal(withoutUnixSockets('riscv64'), undefined)
})
