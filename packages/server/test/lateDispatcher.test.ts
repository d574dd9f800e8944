/**
 * A server that answers `initialize` before its dispatcher is loaded, as a process on stdio does, behaves as any other.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Catalog } from "@skein/server/Catalog"
import * as Middleware from "@skein/server/Middleware"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { AnswersEarly } from "../src/internal/dispatch/lateDispatcher.ts"
import * as kit from "./kit.ts"

const add = Tool.layer(
  Tool.make("add", { input: { a: Schema.Number, b: Schema.Number } }),
  ({ a, b }) => Effect.succeed(a + b)
)

const fail = Tool.layer(Tool.make("fail"), () => Effect.die(new Error("broken")))

const early = (...definitions: ReadonlyArray<Layer.Layer<never, unknown, Catalog>>): kit.Server =>
  Layer.provide(
    McpServer.layer({ name: "test", version: "1.0.0", instructions: "Add." }, ...definitions),
    Layer.succeed(AnswersEarly, true)
  )

const linked = (server: kit.Server, revision?: "2025-11-25" | "2024-11-05") =>
  Effect.flatMap(Effect.orDie(Layer.build(server)), (context) => Effect.provide(kit.link(revision), context))

describe("a server that answers initialize before its dispatcher is loaded", () => {
  for (const revision of ["2024-11-05", "2025-11-25"] as const) {
    it.effect(`${revision} · sends the same result as any other server`, () =>
      Effect.gen(function*() {
        const client = yield* linked(early(add), revision)
        const server = McpServer.layer({ name: "test", version: "1.0.0", instructions: "Add." }, add)
        const other = yield* linked(server, revision)
        const result = yield* client.result("initialize", kit.hello(revision))
        expect(result).toEqual(yield* other.result("initialize", kit.hello(revision)))
        expect(result).toMatchObject({ instructions: "Add.", serverInfo: { name: "test" } })
      }))
  }

  it.effect("2025-11-25 · answers initialize, and the requests behind it in their order", () =>
    Effect.gen(function*() {
      const client = yield* linked(early(add), "2025-11-25")
      const ids = [
        client.send("initialize", kit.hello("2025-11-25")),
        client.send("ping"),
        client.send("tools/list"),
        client.send("tools/call", { name: "gone" })
      ]
      for (const id of ids) yield* client.answer(id)
      expect(client.received.map(({ id }) => id)).toEqual(ids)
      expect(yield* client.call("add", { a: 1, b: 2 })).toMatchObject({ content: [{ text: "3" }] })
    }))

  it.effect("2026-07-28 · answers requests without initialize", () =>
    Effect.gen(function*() {
      const client = yield* linked(early(add, fail))
      expect(yield* client.call("add", { a: 1, b: 2 })).toMatchObject({ content: [{ text: "3" }] })
      expect(yield* client.defect("fail")).toBeTruthy()
      expect((yield* client.error("tools/none")).code).toBe(-32601)
    }))

  it.effect("2025-11-25 · passes initialize through middleware", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const middleware = Middleware.layer((next) => (request) => {
        seen.push(request.method)
        return next(request)
      })
      const client = yield* linked(early(add, middleware), "2025-11-25")
      yield* client.result("initialize", kit.hello("2025-11-25"))
      expect(seen).toEqual(["initialize"])
    }))

  it.effect("2025-11-25 · cancels a request that waits for the dispatcher", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(early(add))
      const client = yield* Effect.provide(kit.link("2025-11-25"), context)
      client.send("initialize", kit.hello("2025-11-25"))
      const id = client.send("tools/list")
      client.notify("notifications/cancelled", { requestId: id })
      yield* client.result("ping")
      expect(client.answers(id)).toEqual([])
      const { inspect } = Context.get(context, McpServer.McpServer)
      expect((yield* inspect).requests).toEqual([])
    }))
})
