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

/** How many updates are buffered for a slow reader of a stream. */
const maxBufferedUpdates = 64

/**
 * Makes a call and returns its progress reports in order, and its result last ("Progress notifications MUST stop after
 * completion", 2025-11-25, progress). If the call fails, the stream fails with the same error after the reports. Each
 * run of the stream makes the call again. Ending a run early cancels its call. Without reports the stream has the
 * result alone. A slow reader has a buffer of 64 updates: beyond that the oldest report is dropped, never the result.
 *
 * @example
 * const updates = Progress.stream((onProgress) => client.callTool("render", { scene }, { onProgress }))
 */
export const stream = <A, E, R>(
  call: (onProgress: (progress: Progress) => void) => Effect.Effect<A, E, R>
): Stream.Stream<Update<A>, E, R> =>
  Stream.callback<Update<A>, E, R>((queue) =>
    Effect.flatMap(
      Effect.suspend(() => call((progress) => void Queue.offerUnsafe(queue, { _tag: "Progress", ...progress }))),
      (result) =>
        Effect.sync(() => {
          Queue.offerUnsafe(queue, { _tag: "Result", result })
          Queue.endUnsafe(queue)
        })
    ), { bufferSize: maxBufferedUpdates, strategy: "sliding" })
