/** Waits in turns of the event loop, and collects the statuses of a client. */
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type * as Client from "../../src/Client.ts"
import type { Status } from "../../src/Status.ts"

/** One turn of the event loop. */
export const turn = Effect.callback<void>((resume) => {
  const handle = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(handle))
})

/** Waits until `holds` returns true, for at most a minute: threads and sockets need a varying number of turns. */
export const until = (holds: () => boolean, message = "The condition was not met"): Effect.Effect<void> =>
  Effect.gen(function*() {
    const end = performance.now() + 60_000
    while (!holds()) {
      if (performance.now() > end) return yield* Effect.die(new Error(message))
      yield* turn
    }
  })

/** Ten turns, in which nothing relevant should happen. */
export const quiet = Effect.repeat(turn, { times: 10 })

/** Collects the statuses of a client from now on. */
export const watch = (client: Client.Client) =>
  Effect.gen(function*() {
    const seen: Array<Status> = []
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(client.status, (status) => Effect.sync(() => void seen.push(status))),
      { startImmediately: true }
    )
    return { seen, done: Fiber.join(fiber), tags: () => seen.map(({ _tag }) => _tag) }
  })

export const endMessage = (end: SessionEnd): string => end._tag === "Lost" ? end.cause.message : end._tag
