/**
 * The interface of a client under test. Each library is used as in its documentation. For a library that is based on
 * Effect, the loop of calls is an effect too.
 */
import type { Era } from "../stdio/messages.ts"
import type { Report } from "./serverData.ts"

/** The server of a client. */
export interface Target {
  readonly url: string
  readonly era: Era
  /** The detection result of an earlier connection, if the library supports it. */
  readonly kept?: unknown
}

/**
 * The repeated operation: a call with a small result, a call with a structured result that is validated, a listing from
 * the server, or a listing that may come from a cache. `invalid` returns a structured result that violates its schema.
 */
export type Job = "greet" | "report" | "invalid" | "list" | "cached"

/** Numbers the operations, and receives their results. Throws if a result is wrong. */
export interface Turns {
  /** The number of the next operation, or undefined at the end of the burst. */
  readonly next: () => number | undefined
  readonly greeted: (turn: number, text: unknown) => void
  readonly reported: (turn: number, report: unknown) => void
  readonly listed: (tools: ReadonlyArray<{ readonly name: string }>) => void
}

/** A connected client. */
export interface Client {
  /** Lists the tools, as an application does before it calls them. */
  readonly discover: () => Promise<void>
  /** Runs operations, `inFlight` at a time, until all are done. */
  readonly drive: (job: Job, inFlight: number, turns: Turns) => Promise<void>
  /** The detection result for `kept` of a later connection, if the library supports it. */
  readonly kept: unknown
  readonly close: () => Promise<void>
}

export type Connect = (target: Target) => Promise<Client>

/** Runs a function `count` times at once. */
export const runConcurrently = async (count: number, one: () => Promise<void>): Promise<void> => {
  await Promise.all(Array.from({ length: count }, one))
}

/** The text of a result. */
export const textOf = (result: { readonly content: ReadonlyArray<unknown> }): unknown =>
  (result.content[0] as { readonly text?: unknown } | undefined)?.text

export type { Report }
