import { type Refusal, refuse } from '../base/refusals.ts'

/**
 * The store failed or cannot be reached. Nothing was changed, unless the message says that this is unknown: the
 * storage died between doing and telling. Answered as 503 `store_unavailable`.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** Whether a change may have been kept all the same. */
  readonly inDoubt: boolean

  constructor(message: string, options: ErrorOptions & { readonly inDoubt?: boolean } = {}) {
    super(message, options)
    this.inDoubt = options.inDoubt ?? false
  }
}

/** The text of the answer. */
function refuseStore({ inDoubt }: StoreError): Refusal {
  return refuse('store_unavailable', inDoubt ? unknownOutcome : undefined)
}

const unknownOutcome =
  'The storage did not answer in time: whether this was recorded is unknown. Look before you repeat it.'

/** Turns a failure of the store into a refusal. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T | Refusal> {
  try {
    return await work
  } catch (error) {
    if (error instanceof StoreError) return refuseStore(error)
    throw error
  }
}
