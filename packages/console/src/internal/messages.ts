/**
 * The messages between a console and its viewers: the page, and `skein top`. They are JSON. Viewers ignore unknown
 * members, and a new `version` means that they cannot read the rest.
 */
import type { Node } from "../ConsoleSource.ts"
import type { Changes } from "../RowTree.ts"

/** The version of these messages. */
export const version = 1

/**
 * A row, as viewers receive it: its `id` and that of its parent begin with the name of its source and a colon. Times are
 * by the clock of the server. Members without a value are absent.
 */
export interface Row extends Node {}

/** The event `hello`: the first one of a connection. */
export interface Hello {
  readonly version: number
  /** Names this start of the console. Interrupts and actions of another one are refused. */
  readonly instance: string
  /** Milliseconds between two events. */
  readonly interval: number
  readonly showPayloads: boolean
}

/** The event `rows`. */
export type Rows = Changes<Row>

/** The response to `GET tree`. */
export interface Tree extends Hello {
  readonly at: number
  readonly rows: ReadonlyArray<Row>
}

/** The response to `GET more`. */
export interface More {
  readonly rows: ReadonlyArray<Row>
  readonly after?: string
}

/** The body of `POST interrupt`. */
export interface Interrupt {
  readonly instance: string
  readonly id: string
}

/** The response to `POST interrupt`. `NotFound`: the row has ended, or cannot be interrupted. */
export interface Interrupted {
  readonly outcome: "Interrupted" | "NotFound" | "Restarted"
}

/** The body of `POST act`. */
export interface Act extends Interrupt {
  /** The name of an action of the row. */
  readonly action: string
}

/** The response to `POST act`. `NotFound`: the row has ended, does not offer the action, or there was nothing to do. */
export interface Acted {
  readonly outcome: "Done" | "NotFound" | "Restarted"
  readonly message?: string
}
