/**
 * The progress of a call as a stream: the reports of the server, and then the result.
 *
 * **When to use.** To show progress as a stream. For a callback, give `onProgress` to the call itself.
 *
 * @example
 * Progress.stream((onProgress) => client.callTool("render", { scene }, { onProgress })).pipe(
 *   Stream.runForEach((update) =>
 *     update._tag === "Progress" ? Console.log(update.progress, update.message) : Console.log(update.result.content))
 * )
 */
import type { Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

/** A progress report, or the result, which is the last element. */
export type Update<A> =
  | { readonly _tag: "Progress" } & Progress
  | { readonly _tag: "Result"; readonly result: A }

/** The options of a stream. */
export interface Options {
  /**
   * How many updates are buffered for a slow reader of the stream: 64 by default, at least 1. Beyond that the oldest
   * report is dropped. The result is never dropped.
   */
  readonly maxBufferedUpdates?: number | undefined
}

/**
 * Makes a call and returns its progress reports in order, and its result last ("Progress notifications MUST stop after
 * completion", 2025-11-25, progress). If the call fails, the stream fails with the same error after the reports. Each
 * run of the stream makes the call again. Ending a run early cancels its call. Without reports the stream has the
 * result alone.
 *
 * @example
 * const updates = Progress.stream((onProgress) => client.callTool("render", { scene }, { onProgress }))
 */
export const stream = <A, E, R>(
  call: (onProgress: (progress: Progress) => void) => Effect.Effect<A, E, R>,
  options: Options = {}
): Stream.Stream<Update<A>, E, R> =>
  Stream.callback<Update<A>, E, R>((queue) =>
    Effect.flatMap(
      Effect.suspend(() => call((progress) => void Queue.offerUnsafe(queue, { _tag: "Progress", ...progress }))),
      (result) =>
        Effect.sync(() => {
          Queue.offerUnsafe(queue, { _tag: "Result", result })
          Queue.endUnsafe(queue)
        })
    ), { bufferSize: Math.max(1, options.maxBufferedUpdates ?? 64), strategy: "sliding" })
