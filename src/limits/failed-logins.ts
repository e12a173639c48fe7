/** Failed logins on their way to the other gateways, and from them. */

export type LoginKey = 'agent' | 'address'

type Take = (kind: LoginKey, key: string) => void

export interface FailedLogins {
  /** A login failed here: the others are told. */
  readonly note: Take
  /** A login failed elsewhere. */
  readonly arrived: Take
  /** Calls `take` with those that failed elsewhere. */
  follow(take: Take): void
}

/** Of a gateway that is alone: nobody is told. */
export function createFailedLogins(): FailedLogins {
  let taker: Take = () => {}
  return {
    note() {},
    arrived: (kind, key) => taker(kind, key),
    follow(take) {
      taker = take
    },
  }
}
