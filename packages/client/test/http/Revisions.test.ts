/** The whole client over HTTP against a Skein server, in every revision. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as NodeServer from "@skein/server/NodeHttp"
import * as Polling from "@skein/server/Polling"
import * as ServerProgress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import { advanceUntil, settle, until } from "./support/connection.ts"

const over: Array<string> = []

const tools = McpServer.layer(
  { name: "eras", version: "1" },
  Tool.layer(
    Tool.make("añadir", { input: { a: Schema.Int, b: Schema.Int } }),
    ({ a, b }) => Effect.succeed(`${a + b}`)
  ),
  Tool.layer(Tool.make("steps"), () =>
    Effect.as(
      Effect.forEach([1, 2, 3], (progress) => Effect.andThen(Effect.yieldNow, ServerProgress.report({ progress }))),
      "done"
    )),
  Tool.layer(
    Tool.make("poll"),
    () => Effect.as(Effect.andThen(Polling.disconnect("250 millis"), Effect.sleep("1 second")), "polled")
  ),
  Tool.layer(Tool.make("hang"), () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void over.push("hang"))))
)

const serve = Effect.map(
  Effect.orDie(Layer.build(NodeServer.layer({ port: 0 }).pipe(Layer.provide(tools)))),
  (context) => Context.get(context, NodeServer.Server)
)

const text = ({ content }: { readonly content: ReadonlyArray<unknown> }) =>
  (content[0] as { readonly text: string }).text

describe("a Skein server over HTTP", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · answers calls with progress and errors, handles cancellation, and closes the session`, () =>
      Effect.gen(function*() {
        const { endpoint, url } = yield* serve
        yield* Effect.scoped(Effect.gen(function*() {
          const client = yield* Client.make(Http.transport({ url }), { revisions: [revision] })
          expect([client.revision, client.serverProfile?.httpMode]).toEqual([revision, "streamable"])
          expect((yield* client.listToolsPage()).tools.map(({ name }) => name).sort()).toEqual([
            "añadir",
            "hang",
            "poll",
            "steps"
          ])
          expect(text(yield* client.callTool("añadir", { a: 1, b: 2 }))).toBe("3")
          const seen: Array<number> = []
          const steps = yield* client.callTool("steps", {}, { onProgress: ({ progress }) => void seen.push(progress) })
          expect([text(steps), seen]).toEqual(["done", [1, 2, 3]])
          const answers = yield* Effect.all(
            Array.from({ length: 50 }, (_, a) => client.callTool("añadir", { a, b: a })),
            { concurrency: "unbounded" }
          )
          expect(answers.map(text)).toEqual(Array.from({ length: 50 }, (_, a) => `${2 * a}`))
          over.length = 0
          const hanging = yield* Effect.forkChild(client.callTool("hang"))
          yield* settle
          yield* Fiber.interrupt(hanging)
          yield* until(() => over.length === 1)
          expect((yield* Effect.flip(client.readResource("x:y"))).reason._tag).toBe("Unsupported")
          expect(endpoint.sessions).toBe(Revision.era(revision) === "session" ? 1 : 0)
        }))
        expect(endpoint.sessions).toBe(0)
      }))
  }

  it.effect("2025-11-25 · the server MAY close the connection, and the client polls for its response", () =>
    Effect.gen(function*() {
      const { url } = yield* serve
      const client = yield* Client.make(Http.transport({ url }), { revisions: ["2025-11-25"] })
      const polled = yield* Effect.forkChild(client.callTool("poll"))
      yield* advanceUntil("250 millis", () => polled.pollUnsafe() !== undefined)
      expect(text(yield* Fiber.join(polled))).toBe("polled")
    }))

  it.live("runs the shortest program", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* serve
      const program = Effect.gen(function*() {
        const client = yield* Client.make(Http.transport({ url }))
        return yield* client.callTool("añadir", { a: 1, b: 2 })
      }).pipe(Effect.scoped)
      expect(text(yield* program)).toBe("3")
    })))
})
