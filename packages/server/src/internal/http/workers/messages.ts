/**
 * The messages between the primary process and its workers, over the IPC channel of `node:cluster`. They are members of
 * an object `{ skein }`, beside the messages of an application.
 */
import type { Change } from "../../../EventBus.ts"
import type { Message, SessionBounds, SessionChange, SessionRecord } from "../../../Fleet.ts"
import type { Phase } from "@skein/runtime/Workers"

/** The number of the primary process, where a message has the number of a worker. */
export const primaryNumber = 0

/** A question, or with no `number` a message without an answer. Both are about a topic. */
export interface Question {
  readonly _tag: "Question"
  readonly number?: number | undefined
  readonly topic: string
  readonly content: unknown
}

/** The answer to the question with the number. */
export interface Answer {
  readonly _tag: "Answer"
  readonly number: number
  readonly content: unknown
}

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
  /** Nothing: the result follows all that the primary process has sent before. */
  | { readonly _tag: "HasGone"; readonly node: number }
  | { readonly _tag: "Flush" }

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
  /** For one worker, for the primary process, or for all others. */
  | (Question & { readonly to: number | undefined })
  | (Answer & { readonly to: number })

export type FromPrimary =
  /** The answer to `Hello`: the key that encrypts the state of requests, if the options have none. */
  | {
    readonly _tag: "Welcome"
    readonly stateKey: string
    readonly instance: string
    readonly workers: ReadonlyArray<number>
    readonly phase: Phase
  }
  /** The workers that serve now. */
  | { readonly _tag: "Workers"; readonly workers: ReadonlyArray<number>; readonly phase: Phase }
  | { readonly _tag: "Result"; readonly number: number; readonly result: unknown }
  /** A message of a worker. With a number its receipt is confirmed. */
  | { readonly _tag: "Message"; readonly message: Message; readonly number?: number }
  | { readonly _tag: "Published"; readonly change: Change }
  | (Question & { readonly from: number })
  | (Answer & { readonly from: number })
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
