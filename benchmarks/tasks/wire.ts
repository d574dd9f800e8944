/**
 * What the benchmark says to the processes that it measures, and what they say.
 */

/** Where tasks are kept. */
export type Store = "memory" | "sqlite" | "postgres"

/** The tools whose tasks are counted: a plain one, and durable ones of one step and of five. */
export type Tool = "plain" | "one" | "five"

/**
 * What tasks are begun and followed through: the engine's service; a client in the same process; or a client in a process of its own,
 * over HTTP. `legacy` is the client in the same process in 2025-11-25, whose shape of tasks other libraries have as well.
 */
export type Through = "engine" | "link" | "legacy" | "http"

/** What a process is told to do. Times are in milliseconds. */
export type Command =
  /** Opens an engine on a database (a file, or the address of one), and a server, maybe with a door to the network. */
  | { readonly do: "open"; readonly store: Store; readonly at: string; readonly work: boolean; readonly door: boolean }
  /** Opens a client of a server elsewhere. */
  | { readonly do: "connect"; readonly url: string }
  /** Runs tasks to their ends, so many at a time, for so long. */
  | {
    readonly do: "burst"
    readonly through: Through
    readonly tool: Tool
    readonly inFlight: number
    readonly millis: number
  }
  /** Begins tasks and leaves them to themselves. */
  | { readonly do: "begin"; readonly tool: "sleeps" | "asks"; readonly count: number }
  /** Listens to tasks that tell the time, and says how late it was heard. */
  | { readonly do: "listen"; readonly tasks: number; readonly ticks: number; readonly every: number }
  /** Keeps so many tasks of many steps going, until it is told to close. */
  | { readonly do: "march"; readonly tasks: number; readonly step: number }
  | { readonly do: "cpu" }
  | { readonly do: "memory" }
  /** Stops, as it does when it gets a SIGTERM. */
  | { readonly do: "close" }

/** What a burst came to. */
export interface Burst {
  readonly tasks: number
  readonly wall: number
  /** Processor time of the process. */
  readonly cpu: number
}

/** A step of a marching task that has just ended: in which task, which one, and when by the clock that all processes share. */
export interface Stride {
  readonly task: string
  readonly step: number
  readonly at: number
}

/** What a process says: an answer, or that a step has ended. */
export type Reply = { readonly value: unknown } | { readonly error: string } | { readonly stride: Stride }

/** What every task of `Tool` ends with. */
export const done = "done"

/** Milliseconds, by a clock that all processes of the machine share. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6
