/**
 * The workers of a server: the processes that `NodeHttp.runMain` of `@skein/server` starts with the option `workers`, as
 * one of them sees them. A part of a server that has something apart in each process, such as a view of its requests, asks the others
 * with it. A server of one process has no such service.
 *
 * @example
 * // The number of jobs of all workers.
 * const jobsOfAll = Effect.gen(function*() {
 *   const workers = yield* Workers
 *   yield* workers.answer("jobs", () => Effect.sync(() => jobs.size))
 *   return Effect.map(workers.askAll("jobs"), (answers) => answers.reduce((sum, { answer }) => sum + Number(answer), 0))
 * })
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** The phase of a server with workers: until all have started, then, and from the beginning of its shutdown. */
export type Phase = "starting" | "serving" | "stopping"

/** The answer of one worker, as plain JSON. */
export interface Answer {
  readonly worker: number
  /** `undefined`: the worker did not answer in time, has exited, or its function has failed. */
  readonly answer: unknown
}

/** The workers of a server, as one of them sees them. Everything that they send to each other is plain JSON. */
export interface Service {
  /** The number of this worker, from 1. No later worker has it. */
  readonly number: number
  /** Names this run of the server: all workers have the same text, and a server that was started again has another. */
  readonly instance: string
  /** The phase of the server, as far as this worker knows. */
  readonly phase: () => Phase
  /** The workers that accept requests now, usually with this one. A worker that stops is not among them. */
  readonly serving: () => ReadonlyArray<number>
  /**
   * Answers the questions of a topic until the scope closes, those of this worker included. A failure is logged at the
   * level `Debug`.
   */
  readonly answer: (
    topic: string,
    answer: (question: unknown, from: number) => Effect.Effect<unknown, unknown>
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Asks one worker. The result is `undefined` after 1 second, or `timeoutMs`, without an answer. */
  readonly ask: (worker: number, topic: string, question?: unknown, timeoutMs?: number) => Effect.Effect<unknown>
  /** Asks all workers that serve, and this one. It takes 1 second at most, or `timeoutMs`. */
  readonly askAll: (
    topic: string,
    question?: unknown,
    timeoutMs?: number
  ) => Effect.Effect<ReadonlyArray<Answer>>
  /** Sends something to all other workers, which receive it with `answer`. */
  readonly tell: (topic: string, content: unknown) => void
}

/** The workers of a server: see the module. */
export class Workers extends Context.Service<Workers, Service>()("@skein/runtime/Workers") {}
