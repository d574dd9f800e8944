/**
 * The commands that the benchmark sends to the measured processes, and their replies.
 */

/** The store of the tasks. */
export type Store = "memory" | "sqlite" | "postgres"

/**
 * The tools whose tasks are counted: a tool that is not durable, a durable tool with one step, and one with five steps.
 */
export type Tool = "plain" | "one" | "five"

/**
 * How tasks are started and followed: directly with the engine, with a client in the same process, or with a client in
 * another process over HTTP. `inMemoryLegacy` is a client in the same process with 2025-11-25, whose tasks other
 * libraries support too.
 */
export type Through = "engine" | "inMemory" | "inMemoryLegacy" | "http"

/** A command to a process. Times are in milliseconds. */
export type Command =
  /** Opens an engine with a database (a file or a URL) and a server, which listens on a port if `listen` is set. */
  | {
    readonly do: "open"
    readonly store: Store
    readonly at: string
    readonly work: boolean
    readonly listen: boolean
  }
  /** Connects a client to a server in another process. */
  | { readonly do: "connect"; readonly url: string }
  /** Runs tasks to completion for some time, `inFlight` at once. */
  | {
    readonly do: "burst"
    readonly through: Through
    readonly tool: Tool
    readonly inFlight: number
    readonly millis: number
  }
  /** Starts `sleep` tasks, and waits until each of them has begun to sleep. */
  | { readonly do: "sleep"; readonly count: number }
  /** Runs tasks with a number of steps, each followed by a question that is answered immediately. */
  | { readonly do: "interview"; readonly tasks: number; readonly questions: number }
  /**
   * Runs up to `count` tasks to completion, which all expire at the same time, in milliseconds of Unix time. Replies
   * with their number, which is less if the time of the tasks is too short.
   */
  | { readonly do: "runExpiring"; readonly count: number; readonly expireAt: number }
  /** Waits until all tasks have been deleted, and replies with the time in milliseconds of Unix time. */
  | { readonly do: "awaitDeletion" }
  /** Starts tasks without waiting for them. */
  | { readonly do: "begin"; readonly tool: "sleep" | "ask"; readonly count: number }
  /** Follows tasks that publish the current time, and returns the latency of each notification. */
  | { readonly do: "follow"; readonly tasks: number; readonly ticks: number; readonly interval: number }
  /** Keeps a number of tasks with many steps running until `close`. */
  | { readonly do: "runSteps"; readonly tasks: number; readonly stepDuration: number }
  | { readonly do: "cpu" }
  | { readonly do: "memory" }
  /** Shuts down as after a SIGTERM. */
  | { readonly do: "close" }

/** The measurements of a burst. */
export interface Burst {
  readonly tasks: number
  readonly wall: number
  /** Processor time of the process. */
  readonly cpu: number
}

/** The end of a step: its task, its number, and the time of the clock that all processes share. */
export interface StepEnd {
  readonly task: string
  readonly step: number
  readonly at: number
}

/** A message of a process: the reply to a command, or the end of a step. */
export type Reply = { readonly value: unknown } | { readonly error: string } | { readonly stepEnd: StepEnd }

/** The result of every task of `Tool`. */
export const done = "done"

/** The time in milliseconds of a clock that all processes of the machine share. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6
