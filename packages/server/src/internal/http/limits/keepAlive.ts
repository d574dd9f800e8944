/**
 * Comments on quiet streams, so that proxies do not close them.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { HttpAnswer } from "../messages/adapter.ts"
import * as sse from "../messages/sse.ts"

// The streams are divided into this many groups, so that they are not all written in one turn of the event loop.
const slots = 16

/**
 * Writes a comment to each stream once per interval. One fiber serves all streams. It runs only while there are
 * streams. Slow streams are skipped: their connections are in use, and further text would wait in memory. The interval
 * is in milliseconds; with 0 no comments are written.
 */
export const makeKeepAlive = (interval: number, context: Context.Context<never>) => {
  const streams: ReadonlyArray<Set<HttpAnswer>> = Array.from({ length: slots }, () => new Set())
  let fiber: Fiber.Fiber<never> | undefined
  let next = 0
  let turn = 0
  let size = 0

  /** The interval is in milliseconds; with 0 no comments are written. */

  const beat = Effect.sync(() => {
    turn = (turn + 1) % slots
    for (const stream of streams[turn]!) if (!stream.slow && !stream.isClosed) stream.write(sse.keepAlive)
  })
  const beats = Effect.forever(Effect.andThen(Effect.sleep(Math.ceil(interval / slots)), beat))

  /** Adds a stream. Returns the slot to remove it from. */
  const add = (stream: HttpAnswer): number => {
    const slot = next
    next = (slot + 1) % slots
    streams[slot]!.add(stream)
    size++
    if (interval > 0) fiber ??= Effect.runForkWith(context)(beats)
    return slot
  }

  const remove = (stream: HttpAnswer, slot: number): void => {
    if (!streams[slot]!.delete(stream)) return
    size--
    if (size > 0) return
    fiber?.interruptUnsafe()
    fiber = undefined
  }

  return { add, remove }
}

export type KeepAlive = ReturnType<typeof makeKeepAlive>
