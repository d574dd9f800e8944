/** Progress of a call as a stream. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as ServerProgress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Client from "../src/Client.ts"
import * as Progress from "../src/Progress.ts"
import { cancelled, metaOf, open, pass, settle } from "./subscriptions/kit.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { fieldsOf } from "./support/fields.ts"

const steps = (...progress: ReadonlyArray<number>) => progress.map((progress) => ({ _tag: "Progress", progress }))

const report = (
  server: ScriptedServer.ScriptedServer,
  request: JsonRpc.Request,
  progress: unknown,
  more: JsonRpc.JsonObject = {}
) =>
  server.notify("notifications/progress", {
    progressToken: metaOf(request)["progressToken"],
    progress,
    ...more
  })

const call = (client: Client.Client) => Progress.stream((onProgress) => client.callTool("t", {}, { onProgress }))

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect("emits the progress of a Skein server in order, and the result last", () =>
      Effect.gen(function*() {
        const work = Tool.layer(Tool.make("work"), () =>
          Effect.gen(function*() {
            for (let n = 1; n <= 3; n++) yield* ServerProgress.report({ progress: n, total: 3, message: `step ${n}` })
            return "done"
          }))
        const layer = McpServer.layer({ name: "working", version: "1.0.0" }, work)
        const { serve } = Context.get(yield* Layer.build(layer), McpServer.McpServer)
        const client = yield* Client.make(InMemoryTransport.transport(serve), { revisions: [revision] })
        const updates = yield* Stream.runCollect(
          Progress.stream((onProgress) => client.callTool("work", {}, { onProgress }))
        )
        const text = (n: number) => revision === "2024-11-05" ? {} : { message: `step ${n}` }
        assert.deepStrictEqual(
          updates.slice(0, 3) as ReadonlyArray<unknown>,
          [1, 2, 3].map((progress) => ({
            _tag: "Progress",
            progress,
            total: 3,
            ...text(progress)
          }))
        )
        assert.strictEqual(updates.length, 4)
        const [last] = updates.slice(3)
        assert.deepStrictEqual(last?._tag === "Result" ? last.result.content : undefined, [{
          type: "text",
          text: "done"
        }])
      }))

    it.effect("Progress notifications MUST stop after completion: emits none after the result", () =>
      Effect.gen(function*() {
        const { client } = yield* open(revision, (request, server) => {
          for (const progress of [1, 1, 0.5, "2", null, 2]) report(server, request, progress)
          // Progress that arrives after the response, in the same turn.
          server.send({ _tag: "Success", id: request.id, result: { content: [] } })
          report(server, request, 3)
          return "no response"
        })
        const updates = yield* Stream.runCollect(call(client))
        assert.deepStrictEqual(updates.slice(0, -1) as ReadonlyArray<unknown>, steps(1, 2))
        assert.strictEqual(updates.at(-1)?._tag, "Result")
      }))
  })
}

describe("a progress stream", () => {
  it.effect("fails as its call does, after the progress that arrived", () =>
    Effect.gen(function*() {
      const { client } = yield* open("2025-11-25", (request, server) => {
        report(server, request, 1)
        return { error: { code: -32603, message: "Oops" } }
      })
      const seen: Array<unknown> = []
      const error = yield* Effect.flip(
        Stream.runForEach(call(client), (update) => Effect.sync(() => seen.push(update)))
      )
      assert.strictEqual(fieldsOf(error).error?.reason, "InternalError")
      assert.deepStrictEqual(seen, steps(1))
    }))

  it.effect("drops the oldest of more than 64 updates, never the result", () =>
    Effect.gen(function*() {
      const size = 64
      const { client } = yield* open("2025-11-25", (request, server) => {
        for (let n = 0; n < 100; n++) report(server, request, n)
        return ScriptedServer.success({ content: [] })
      })
      const seen: Array<unknown> = []
      const reading = Stream.runForEach(call(client), (update) =>
        Effect.gen(function*() {
          seen.push(update._tag === "Progress" ? update.progress : "result")
          if (seen.length === 1) yield* Effect.sleep(1000)
        }))
      const fiber = yield* Effect.forkChild(reading, { startImmediately: true })
      yield* pass(1000)
      yield* Fiber.join(fiber)
      assert.strictEqual(seen.at(-1), "result")
      // Updates taken before the others arrived are not in the buffer.
      assert.isAtMost(seen.length, size + 1)
      assert.isAtLeast(seen.length, size)
      const reported = seen.slice(0, -1) as Array<number>
      assert.deepStrictEqual(reported, reported.toSorted((a, b) => a - b))
      assert.strictEqual(reported.at(-1), 99)
    }))

  it.effect("cancels the call with notifications/cancelled if the consumer ends it early", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25", (request, server) => {
        report(server, request, 1)
        return "no response"
      })
      const first = yield* Stream.runCollect(Stream.take(call(client), 1))
      assert.deepStrictEqual(first as ReadonlyArray<unknown>, steps(1))
      yield* settle
      assert.deepStrictEqual(cancelled(server), [server.requests("tools/call")[0]!.id])
    }))

  it.effect("makes a new call with its own progress token on each run", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25", () => ScriptedServer.success({ content: [] }))
      const stream = call(client)
      for (let n = 0; n < 2; n++) {
        assert.deepStrictEqual((yield* Stream.runCollect(stream)).map(({ _tag }) => _tag), ["Result"])
      }
      const tokens = server.requests("tools/call").map((request) => metaOf(request)["progressToken"])
      assert.strictEqual(new Set(tokens).size, 2)
    }))
})
