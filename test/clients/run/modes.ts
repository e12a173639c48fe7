/** What is asked of each client. The first part of a path is the mode, the second the client. */
export const modes = {
  plain: 'gets the answer of the server',
  stream: 'shows each part of an answer when it comes',
  refused: 'shows why it is refused',
  held: 'gets the answer once a reviewer has approved',
  down: 'gets a large answer whole',
  up: 'sends a large body whole',
  revoked: 'fails when the key is revoked in the middle of an answer',
} as const

export type Mode = keyof typeof modes

/** Whether the answer comes in two parts, of which the last one waits for the test. */
export const isStreamed = (mode: Mode): boolean => mode === 'stream' || mode === 'revoked'

/** What servers say, in whatever form. */
export const greeting = 'hello from upstream'
/** The parts of an answer that is streamed. The last one comes when the test says so. */
export const parts = { first: 'the first part', last: 'the last part' } as const
/** Why a request is refused. */
export const reason = 'Closed on Sundays'
