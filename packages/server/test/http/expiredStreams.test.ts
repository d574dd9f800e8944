/** Streams whose credentials expire. */
import { describe, expect, it } from "@effect/vitest"
import type * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { until } from "./session/kit.ts"
import * as sessions from "./session/kit.ts"
import * as kit from "./kit.ts"

/** The `x-expires` header has the seconds until the credentials of a request expire. */
const protection = (clock: { readonly currentTimeMillisUnsafe: () => number }): Http.Protection => ({
  identify: (request) => {
    const seconds = request.header("x-expires")
    return seconds === undefined
      ? { id: "ada" }
      : { id: "ada", expiresAt: clock.currentTimeMillisUnsafe() / 1_000 + Number(seconds) }
  }
})

const serve = (options?: Http.Options) =>
  Effect.gen(function*() {
    const clock = yield* Effect.clockWith(Effect.succeed)
    const server = yield* sessions.serve({
      legacySse: LegacySse.make(),
      keepAliveInterval: 0,
      ...options,
      principal: () => undefined,
      protection: protection(clock)
    })
    return { server, streams: (count: number) => until(() => server.endpoint.streams === count) }
  })

const soon = { "x-expires": "300" }
const later = { "x-expires": "3600" }
const listen = kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
const listenUntil = (headers: object) => ({ ...listen, headers: { ...listen.headers, ...headers } })

describe("the streams of expired credentials", () => {
  it.effect("2025-11-25 · a GET stream ends, and its client resumes it with its next credentials", () =>
    Effect.scoped(Effect.gen(function*() {
      const { server, streams } = yield* serve()
      const client = yield* sessions.enter(server, "2025-11-25", { headers: soon })
      const stream = yield* client.get()
      const { id } = yield* stream.next
      yield* TestClock.adjust("299 seconds")
      expect(server.endpoint.streams).toBe(1)
      yield* TestClock.adjust("2 seconds")
      expect(yield* stream.next).toMatchObject({ retry: 1000 })
      expect(yield* stream.ended).toBe("end")
      yield* streams(0)
      // The session is open, and the resumed stream lasts as long as its own credentials.
      const resumed = yield* client.get({ ...later, "last-event-id": id })
      yield* streams(1)
      expect((yield* client.post(sessions.call(1, "echo", { text: "hi" }), later)).status).toBe(200)
      yield* TestClock.adjust("20 minutes")
      expect(server.endpoint.streams).toBe(1)
      yield* TestClock.adjust("41 minutes")
      expect(yield* resumed.ended).toBe("end")
    })))

  it.effect("2026-07-28 · subscriptions/listen returns its result", () =>
    Effect.scoped(Effect.gen(function*() {
      const { server, streams } = yield* serve()
      const ending = yield* kit.open(server, listenUntil(soon))
      yield* ending.message
      const staying = yield* kit.open(server, listenUntil(later))
      yield* staying.message
      const endless = yield* kit.open(server, listen)
      yield* endless.message
      yield* TestClock.adjust("302 seconds")
      expect(yield* ending.message).toMatchObject({ id: 1, result: { resultType: "complete" } })
      expect(yield* ending.ended).toBe("end")
      yield* streams(2)
      yield* TestClock.adjust("1 hour")
      expect(yield* staying.ended).toBe("end")
      yield* streams(1)
    })))

  it.effect("2024-11-05 · an HTTP+SSE session ends, unless a message has arrived with later credentials", () =>
    Effect.scoped(Effect.gen(function*() {
      const { server, streams } = yield* serve()
      const open = (headers: kit.Request["headers"]) =>
        Effect.flatMap(
          kit.open(server, { method: "GET", path: "/sse", headers: { accept: "text/event-stream", ...headers } }),
          (stream) => Effect.map(stream.next, ({ data }) => ({ stream, path: data! }))
        )
      const [ending, staying, endless] = [yield* open(soon), yield* open(soon), yield* open(soon)]
      const body = sessions.initialize("2024-11-05")
      for (const headers of [later, { "x-expires": "1" }]) {
        yield* kit.send(server, { path: staying.path, headers: { ...kit.posting, ...headers }, body })
      }
      for (const headers of [{}, { "x-expires": "1" }]) {
        yield* kit.send(server, { path: endless.path, headers: { ...kit.posting, ...headers }, body })
      }
      yield* streams(3)
      yield* TestClock.adjust("302 seconds")
      expect(yield* ending.stream.ended).toBe("end")
      const late = yield* kit.send(server, { path: ending.path, headers: { ...kit.posting, ...later }, body })
      expect(late.status).toBe(404)
      expect(server.endpoint.streams).toBe(2)
      yield* TestClock.adjust("1 hour")
      expect(yield* staying.stream.ended).toBe("end")
      yield* streams(1)
    })))

  it.effect("expiredStreams \"keep\" leaves the streams open", () =>
    Effect.scoped(Effect.gen(function*() {
      const { server } = yield* serve({ expiredStreams: "keep" })
      const stream = yield* kit.open(server, listenUntil(soon))
      yield* stream.message
      yield* TestClock.adjust("1 day")
      expect(server.endpoint.streams).toBe(1)
    })))

  it.effect("does not end the response of a request in progress", () =>
    Effect.scoped(Effect.gen(function*() {
      const { server } = yield* serve()
      const client = yield* sessions.enter(server, "2025-11-25", { headers: { "x-expires": "10" } })
      const stream = yield* client.stream(sessions.call(1, "steps", { key: "a" }))
      expect((yield* stream.message).params.progress).toBe(1)
      yield* TestClock.adjust("10 minutes")
      for (const gate of ["a 1", "a 2"]) server.control.open(gate)
      yield* stream.message
      expect((yield* stream.message).result.content[0].text).toBe("a done")
    })))
})
