/** An HTTP server that stops and starts again on a real socket, in session-based and stateless revisions. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as ServerHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Context from "effect/Context"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { quiet } from "./support.ts"
import { peerOf } from "../support/peer.ts"

/** A server that records the arguments of its one tool. */
const serving = Effect.gen(function*() {
  const calls: Array<number> = []
  const pay = Tool.make("pay", { input: Schema.Struct({ n: Schema.Number }) })
  const mcp = McpServer.layer(
    { name: "till", version: "1.0.0" },
    Tool.layer(pay, ({ n }) =>
      Effect.sync(() => {
        calls.push(n)
        return "paid"
      }))
  )
  let scope: Scope.Closeable | undefined
  let port = 0
  const start = Effect.gen(function*() {
    scope = yield* Scope.make()
    const built = yield* Layer.build(Layer.provide(ServerHttp.layer({ port, shutdownTimeout: 0 }), mcp)).pipe(
      Scope.provide(scope)
    )
    const listening = Context.get(built, ServerHttp.Server)
    port = listening.port
    return listening.url
  })
  // The client notices that its idle connections are closed. A request sent just before that would be lost without a
  // trace.
  const stop = Effect.andThen(
    Effect.suspend(() => scope === undefined ? Effect.void : Scope.close(scope, Exit.void)),
    quiet
  )
  yield* Effect.addFinalizer(() => stop)
  return { calls, start, stop, url: yield* start }
})

const reconnect = { initialDelay: 20, maxDelay: 20, maxAttempts: 50 }

for (
  const [name, transport] of [["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const
) {
  describe(`over ${name}`, () => {
    for (const revision of Revision.all.filter((revision) => revision !== "2024-11-05")) {
      it.live(`${revision} · reaches a restarted server, with a new session where there are sessions, and repeats no call`, () =>
        Effect.gen(function*() {
          const { calls, start, stop, url } = yield* serving
          const client = yield* Client.make(transport({ url, shutdownTimeout: 100 }), {
            revisions: [revision],
            reconnect
          })
          const session = peerOf(client)
          for (let n = 1; n <= 5; n++) {
            yield* client.callTool("pay", { n })
            yield* stop
            yield* start
          }
          yield* client.callTool("pay", { n: 6 })
          assert.deepStrictEqual(calls, [1, 2, 3, 4, 5, 6])
          assert.strictEqual(peerOf(client) === session, Revision.era(revision) === "stateless")
        }))

      it.live(`${revision} · queues calls while the server is down and makes each once after its restart`, () =>
        Effect.gen(function*() {
          const { calls, start, stop, url } = yield* serving
          const client = yield* Client.make(transport({ url, shutdownTimeout: 100 }), {
            revisions: [revision],
            reconnect,
            limits: { maxRetries: 100 }
          })
          yield* client.callTool("pay", { n: 0 })
          yield* stop
          const waiting = Effect.forEach([1, 2, 3], (n) => client.callTool("pay", { n }), { concurrency: 3 })
          yield* Effect.all([waiting, Effect.andThen(Effect.sleep(150), start)], { concurrency: 2 })
          assert.deepStrictEqual(calls.toSorted(), [0, 1, 2, 3])
        }))
    }
  })
}
