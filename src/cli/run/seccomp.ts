/**
 * A filter of system calls (seccomp(2)) under which a program has no unix sockets, nor those of virtual machines. The kernel runs
 * it as a program of classic BPF, which bubblewrap loads.
 */

/** Numbers of the calls, by architecture, and the number of that (linux/audit.h). */
const architectures: Readonly<Record<string, { readonly id: number; readonly socket: number; readonly pair: number }>> =
  {
    x64: { id: 0xc000003e, socket: 41, pair: 53 },
    arm64: { id: 0xc00000b7, socket: 198, pair: 199 },
  }
/** The same everywhere. A ring could open sockets of which the filter sees nothing. */
const ringSetup = 425
/** Calls of another kind of the same processor begin here (x32). */
const otherCalls = 0x4000_0000
const unixFamily = 1
const vsockFamily = 40
const stream = 1
const seqpacket = 5
const typeMask = 0xf

/** Where the call has what (struct seccomp_data). Of an argument the low half counts. */
const at = { number: 0, architecture: 4, first: 16, second: 24 }
const code = { load: 0x20, and: 0x54, ifEqual: 0x15, ifAtLeast: 0x35, answer: 0x06 }
/** What the kernel does: the call, or an answer with an error number. */
const answers = { allow: 0x7fff_0000, noFamily: 0x0005_0000 + 97, noCall: 0x0005_0000 + 38 }

/** One instruction. `yes` and `no` name where it goes on; absent: at the next one. */
interface Instruction {
  readonly label?: string
  readonly code: number
  readonly k: number
  readonly yes?: string
  readonly no?: string
}

/** Undefined for an architecture whose calls are not known here. */
export function withoutUnixSockets(architecture: string): Buffer | undefined {
  const known = architectures[architecture]
  if (known === undefined) return undefined
  return assemble([
    { code: code.load, k: at.architecture },
    { code: code.ifEqual, k: known.id, no: 'noCall' },
    { code: code.load, k: at.number },
    { code: code.ifAtLeast, k: otherCalls, yes: 'noCall' },
    { code: code.ifEqual, k: ringSetup, yes: 'noCall' },
    { code: code.ifEqual, k: known.pair, yes: 'pair' },
    { code: code.ifEqual, k: known.socket, no: 'allow' },
    { code: code.load, k: at.first },
    { code: code.ifEqual, k: vsockFamily, yes: 'noFamily' },
    { code: code.ifEqual, k: unixFamily, yes: 'noFamily', no: 'allow' },
    // A pair of streams leads nowhere else, and programs start others with it. Datagrams of a pair can be sent to any socket.
    { label: 'pair', code: code.load, k: at.second },
    { code: code.and, k: typeMask },
    { code: code.ifEqual, k: stream, yes: 'allow' },
    { code: code.ifEqual, k: seqpacket, yes: 'allow' },
    { label: 'noFamily', code: code.answer, k: answers.noFamily },
    { label: 'noCall', code: code.answer, k: answers.noCall },
    { label: 'allow', code: code.answer, k: answers.allow },
  ])
}

/** In the form of struct sock_filter: code, two jumps counted from the next instruction, and a number. */
function assemble(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(8 * program.length)
  const jump = (label: string | undefined, from: number): number =>
    label === undefined ? 0 : program.findIndex(one => one.label === label) - from - 1
  for (const [index, { code, k, yes, no }] of program.entries()) {
    bytes.writeUInt16LE(code, 8 * index)
    bytes.writeUInt8(jump(yes, index), 8 * index + 2)
    bytes.writeUInt8(jump(no, index), 8 * index + 3)
    bytes.writeUInt32LE(k, 8 * index + 4)
  }
  return bytes
}
