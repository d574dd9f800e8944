/**
 * Progress as a stream: what a server tells about a call while it works, and then its result.
 *
 * Without a stream, give `onProgress` to the call itself.
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

/** One report of progress, or, last, the result. */
export type Update<A> =
  | { readonly _tag: "Progress" } & Progress
  | { readonly _tag: "Result"; readonly result: A }

/** How a stream of progress is made. */
export interface Options {
  /**
   * How many updates wait for whoever reads the stream: 64 by default, at least 1. When that many wait the oldest is dropped: what
   * counts is how far it is now. The result is never dropped.
   */
  readonly maxBufferedUpdates?: number | undefined
}

/**
 * Makes a call, and gives its progress in order, and its result at the end: nothing comes after it ("Progress notifications MUST stop
 * after completion", 2025-11-25, progress). The stream fails as the call does, after the progress that was told. Each run makes the
 * call anew, and ending it early cancels the call. A call that the server says nothing about gives its result alone.
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
