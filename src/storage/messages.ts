/** Messages in chats about held requests, in the storage contract: so that each is edited when its request changes. */
export interface ChatMessage {
  readonly channel: string
  /** What the service calls the message. */
  readonly reference: string
  readonly hitlId: string
  /** The state that it shows: `stateOf` a request. */
  readonly state: string
  /** What was asked, as it was shown. Opaque to the store. */
  readonly shown: string
}

/** A part of a HitlBrief. */
interface RequestState {
  readonly status: string
  readonly replay: string | null
}

/** A message whose request has changed since, with the request as it is now. */
export interface StaleMessage extends Pick<ChatMessage, 'reference' | 'hitlId' | 'shown'>, RequestState {
  readonly decidedBy: string | null
  readonly responseStatus: number | null
  readonly digest: string
}

export interface MessageTable {
  /** Notes a message that was sent. It is forgotten with its request; one that is known stays as it is. */
  keep(message: ChatMessage): Promise<void>
  /** The messages of a channel that do not show the state of their request, in the order of their references. */
  stale(channel: string, limit: number): Promise<readonly StaleMessage[]>
  /** It shows this state now. Null: it is forgotten, since it never changes again. */
  note(message: Pick<ChatMessage, 'channel' | 'reference'>, state: string | null): Promise<void>
}

/** The state of a request in one word, as a message shows it. */
export const stateOf = ({ status, replay }: RequestState): string => `${status} ${replay ?? ''}`
