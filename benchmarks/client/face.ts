/**
 * What a client under test looks like to what drives it. Each library is used as its documentation says; where it lives in Effect,
 * so does the loop that calls it.
 */
import type { Era } from "../stdio/wire.ts"
import type { Report } from "./wire.ts"

/** Where a client connects to. */
export interface Target {
  readonly url: string
  readonly era: Era
  /** What an earlier connection has found out, where the library can keep that. */
  readonly kept?: unknown
}

/**
 * What is done again and again: a small call; one with a structured result that is checked; a listing that is asked of the server, and
 * one that may come from a cache. `lie` answers with what its schema refuses.
 */
export type Job = "greet" | "report" | "lie" | "list" | "cached"

/** Gives out the turns, and hears what came of each. What is wrong is thrown. */
export interface Turns {
  /** The number of the next turn; nothing when it is time to end. */
  readonly next: () => number | undefined
  readonly greeted: (turn: number, text: unknown) => void
  readonly reported: (turn: number, report: unknown) => void
  readonly listed: (tools: ReadonlyArray<{ readonly name: string }>) => void
}

/** One client, connected. */
export interface Client {
  /** Lists the tools, as a host does before it calls them. */
  readonly discover: () => Promise<void>
  /** Takes turns with so many in flight until there are no more. */
  readonly drive: (job: Job, inFlight: number, turns: Turns) => Promise<void>
  /** What a later connection can be given as `kept`, if there is such a thing. */
  readonly kept: unknown
  readonly close: () => Promise<void>
}

export type Connect = (target: Target) => Promise<Client>

/** So many of one at the same time. */
export const together = async (count: number, one: () => Promise<void>): Promise<void> => {
  await Promise.all(Array.from({ length: count }, one))
}

/** The text of a result. */
export const textOf = (result: { readonly content: ReadonlyArray<unknown> }): unknown =>
  (result.content[0] as { readonly text?: unknown } | undefined)?.text

export type { Report }
