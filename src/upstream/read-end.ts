/** Work for the end of a read: it then finds all that came with it, and needs no tick of its own. */
export interface ReadEndWork {
  atReadEnd(): void
}

let isReading = false
/** Of this thread, which reads one connection after the other. */
const due: ReadEndWork[] = []

/** Does the work at the end of the read under way; after this turn of the event loop when there is none. */
export function doAtReadEnd(work: ReadEndWork): void {
  if (isReading) due.push(work)
  else process.nextTick(doWork, work)
}

/** Reads what has come from an upstream, then does what is due. */
export function readFrom(reader: { read(bytes: Buffer): void }, bytes: Buffer): void {
  isReading = true
  try {
    reader.read(bytes)
  } finally {
    isReading = false
    for (let work = due.pop(); work !== undefined; work = due.pop()) work.atReadEnd()
  }
}

const doWork = (work: ReadEndWork): void => work.atReadEnd()
