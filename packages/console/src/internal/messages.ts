/**
 * The messages between a console and its viewers: the page, and `skein top`. They are JSON. Viewers ignore unknown
 * members, and a new `version` means that they cannot read the rest.
 */
import type { Action, Progress } from "../ConsoleSource.ts"

/** The version of these messages. */
export const version = 1

/** A row, as viewers receive it. Members without a value are absent. */
export interface Row {
  /** The name of its source, a colon, and its id there. */
  readonly id: string
  readonly parent?: string
  readonly kind: string
  readonly label: string
  readonly state: string
  readonly waitsFor?: string
  readonly summary?: string
  /** Milliseconds of Unix time, by the clock of the server. */
  readonly since?: number
  readonly progress?: Progress
  readonly principal?: string
  readonly traceId?: string
  readonly details?: { readonly [name: string]: string | number | boolean }
  readonly canInterrupt?: boolean
  readonly actions?: ReadonlyArray<Action>
  readonly more?: { readonly total: number; readonly after?: string }
}

/** The event `hello`: the first one of a connection. */
export interface Hello {
  readonly version: number
  /** Names this start of the console. Interrupts and actions of another one are refused. */
  readonly instance: string
  /** Milliseconds between two events. */
  readonly interval: number
  readonly showPayloads: boolean
}

/**
 * The event `rows`: changes since the last one. With `reset` the viewer forgets all rows first. The event without
 * `continues` completes a change.
 */
export interface Rows {
  /** Milliseconds of Unix time. */
  readonly at: number
  readonly reset?: boolean
  readonly set?: ReadonlyArray<Row>
  readonly remove?: ReadonlyArray<string>
  readonly continues?: boolean
}

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
