/**
 * Cancellation (basic/utilities/cancellation, basic/patterns/cancellation), over every transport that has the
 * notification.
 */
import { expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

const make = Effect.sync(() => {
  const started = Deferred.makeUnsafe<void>()
  const interrupted = Deferred.makeUnsafe<void>()
  const wait = Tool.layer(
    Tool.make("wait"),
    () =>
      Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
        Effect.onInterrupt(() =>
          Effect.andThen(Progress.report({ progress: 1 }), Deferred.succeed(interrupted, undefined))
        )
      )
  )
  const quick = Tool.layer(Tool.make("quick"), () => Effect.succeed("done"))
  return { started, interrupted, server: kit.server(wait, quick) }
})

for (const [{ connect, isDuplex, name }, revision] of transports.each) {
  const session = Revision.era(revision) === "session"
  // "Streamable HTTP: Closing the SSE response stream is the cancellation signal" (2026-07-28): the tests of streams
  // cover it.
  if (!session && !isDuplex) continue
  // Clients here count from 1, and initialize has the first id.
  const requestId = session ? 2 : 1

  it.live(`${revision} · ${name} · SHOULD stop processing, and MUST NOT send any further messages for it`, () =>
    Effect.gen(function*() {
      const { interrupted, server, started } = yield* make
      const client = yield* connect(server, revision)
      const params = { name: "wait", _meta: { progressToken: "p" } }
      const waiting = yield* Effect.forkChild(Effect.exit(client.request("tools/call", params)))
      yield* Deferred.await(started)
      // "Invalid cancellation notifications SHOULD be ignored: unknown request IDs, malformed notifications."
      for (const params of [{ requestId: 99 }, { requestId: String(requestId) }, { requestId: null }, {}]) {
        yield* client.notify("notifications/cancelled", params)
      }
      expect((yield* client.request("tools/call", { name: "quick" })).result.content[0].text).toBe("done")
      expect(yield* Deferred.isDone(interrupted)).toBe(false)
      yield* client.notify("notifications/cancelled", { requestId, reason: "enough" })
      yield* Deferred.await(interrupted)
      yield* client.notify("notifications/cancelled", { requestId })
      expect((yield* client.request("tools/call", { name: "quick" })).result.content[0].text).toBe("done")
      expect(client.received).toEqual([])
      const ended = waiting.pollUnsafe()
      if (ended !== undefined) expect(ended).toMatchObject({ value: { _tag: "Failure" } })
      yield* Fiber.interrupt(waiting)
    }))
}
