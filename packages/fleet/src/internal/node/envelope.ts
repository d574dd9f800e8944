/**
 * The texts that nodes send each other.
 */
import type { Change } from "@skein/server/EventBus"
import type { Message } from "@skein/server/Fleet"

export type Content =
  /** A message about a session. A change has a number, with which other nodes than the sender confirm its receipt. */
  | { readonly _tag: "Session"; readonly message: Message; readonly change?: number; readonly isForOthers?: true }
  /** A change of the catalog. */
  | { readonly _tag: "Published"; readonly change: Change }
  /** Changes that the sender has received. */
  | { readonly _tag: "Confirmed"; readonly changes: ReadonlyArray<number> }
  /** The sender has joined the fleet, or leaves it. */
  | { readonly _tag: "Members"; readonly isServing: boolean }
  /**
   * The connection of the sender was lost: messages after these, by the number of their sender, may have been. The answer is
   * that of a node whose connection was lost, too, and which may not have received the first request.
   */
  | {
    readonly _tag: "Resend"
    readonly after: { readonly [node: number]: number }
    readonly isAnswer?: true
  }

/** A content with its sender. */
export interface Envelope {
  readonly from: number
  /** Numbers the messages of a sender that are sent again if they are lost. */
  readonly number?: number
  readonly content: Content
}

export const encode = (envelope: Envelope): string => JSON.stringify(envelope)

/** Decodes a text that has arrived; undefined if another version of this program has written it otherwise. */
export const decode = (text: string): Envelope | undefined => {
  try {
    const envelope = JSON.parse(text) as Envelope
    return typeof envelope.from === "number" && typeof envelope.content?._tag === "string" ? envelope : undefined
  } catch {
    return undefined
  }
}
