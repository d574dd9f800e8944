/**
 * The messages between the primary process and its workers, over the IPC channel of `node:cluster`. They are members of
 * an object `{ skein }`, beside the messages of an application.
 */
import type { Change } from "../../../EventBus.ts"
import type { Message, SessionBounds, SessionChange, SessionRecord } from "../../../Fleet.ts"

/** An operation on the records. */
export type Operation =
  | {
    readonly _tag: "Create"
    readonly record: SessionRecord
    readonly bounds: SessionBounds
    readonly client: string
  }
  | { readonly _tag: "Find"; readonly id: string; readonly principalId: string | undefined }
  | { readonly _tag: "Change"; readonly id: string; readonly change: SessionChange }
  | { readonly _tag: "End"; readonly id: string }

export type FromWorker =
  /** It is ready for the first message. */
  | { readonly _tag: "Hello" }
  /** It handles the requests that arrive from now on. */
  | { readonly _tag: "Listening"; readonly url: string }
  /** An operation, whose result has the same number. */
  | { readonly _tag: "Operation"; readonly number: number; readonly operation: Operation }
  /** Sessions that were used. */
  | { readonly _tag: "Touch"; readonly ids: ReadonlyArray<string> }
  /** A message for one worker, or for all others. */
  | { readonly _tag: "Send"; readonly to: number | undefined; readonly message: Message }
  /** A change of the catalog, for all workers. */
  | { readonly _tag: "Publish"; readonly change: Change }
  /** It has received the message with the number. */
  | { readonly _tag: "Received"; readonly number: number }

export type FromPrimary =
  /** The answer to `Hello`: the key that encrypts the state of requests, if the options have none. */
  | { readonly _tag: "Welcome"; readonly stateKey: string; readonly workers: ReadonlyArray<number> }
  /** The workers that serve now. */
  | { readonly _tag: "Workers"; readonly workers: ReadonlyArray<number> }
  | { readonly _tag: "Result"; readonly number: number; readonly result: unknown }
  /** A message of a worker. With a number its receipt is confirmed. */
  | { readonly _tag: "Message"; readonly message: Message; readonly number?: number }
  | { readonly _tag: "Published"; readonly change: Change }
  /** End, as after SIGTERM. */
  | { readonly _tag: "Stop" }

const wrap = <A>(message: A): { readonly skein: A } => ({ skein: message })

/** Reads a message of the other side; undefined for a message of the application. */
export const unwrap = <A>(message: unknown): A | undefined =>
  typeof message === "object" && message !== null && "skein" in message ? message.skein as A : undefined

/** Sends a message, unless the channel is closed. */
export const send = <A>(
  to: { readonly connected?: boolean; readonly send?: (message: object, done: () => void) => unknown },
  message: A
): void => {
  // The channel may close meanwhile: the callback receives that error, which would be thrown without it.
  if (to.connected === true) to.send?.(wrap(message), () => {})
}
