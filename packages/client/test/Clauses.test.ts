/** Clauses of the specification about the messages that a client sends and receives, quoted in the titles. */
import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { fieldsOf } from "./support/fields.ts"

const open = (revision: Revision.Revision, script: ScriptedServer.Script) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(ScriptedServer.handshake(revision, script))
    return { server, client: yield* Client.make(server.transport, { info: { name: "host", version: "1" } }) }
  })

const metaOf = ({ params }: JsonRpc.Request): JsonObject => (params?.["_meta"] ?? {}) as JsonObject

/** Makes every kind of request that a client can make. The responses do not matter. */
const everything = (client: Client.Client) =>
  Effect.forEach([
    client.listToolsPage(),
    client.callTool("t", {}, { onProgress: () => {} }),
    client.listResourcesPage(),
    client.listResourceTemplatesPage(),
    client.readResource("a:b"),
    client.listPromptsPage(),
    client.getPrompt("p"),
    client.complete({ ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }),
    client.setLoggingLevel("info"),
    client.ping()
  ], (effect: Effect.Effect<unknown, unknown>) =>
    Effect.exit(effect), { concurrency: "unbounded" })

for (const revision of Revision.all) {
  const modern = Revision.era(revision) === "stateless"

  describe(`${revision} · requests`, () => {
    it.effect(`${revision} · requests MUST include a string or integer ID, which MUST NOT have been used before`, () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(revision, () => ScriptedServer.failure(-32603, "no"))
        yield* everything(client)
        yield* everything(client)
        const requests = server.received.filter(({ _tag }) => _tag === "Request") as ReadonlyArray<JsonRpc.Request>
        assert.isAbove(requests.length, 18)
        assert.isTrue(requests.every(({ id }) => Number.isSafeInteger(id)))
        assert.strictEqual(new Set(requests.map(({ id }) => id)).size, requests.length)
      }))

    it.effect(`${revision} · ${modern ? "required fields MUST be included on every request" : "adds no fields to _meta"}`, () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(revision, () => ScriptedServer.failure(-32603, "no"))
        yield* everything(client)
        const requests = server.received.filter((message) =>
          message._tag === "Request" && message.method !== "server/discover"
        ) as ReadonlyArray<JsonRpc.Request>
        for (const request of requests) {
          const { progressToken, ...meta } = metaOf(request)
          const { "io.modelcontextprotocol/logLevel": _, ...fields } = meta
          assert.strictEqual(progressToken !== undefined, request.method === "tools/call")
          assert.deepStrictEqual(
            fields,
            modern
              ? {
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientInfo": { name: "host", version: "1" },
                "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } }
              }
              : {}
          )
        }
      }))

    it.effect(`${revision} · to cancel an in-flight request, the client MUST send notifications/cancelled; ignores a response after that`, () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(revision, () => "no response")
        const interrupted = yield* Effect.forkChild(client.callTool("a"), { startImmediately: true })
        const late = yield* Effect.forkChild(Effect.flip(client.callTool("b", {}, { timeout: "1 second" })), {
          startImmediately: true
        })
        yield* TestClock.adjust(1)
        yield* Fiber.interrupt(interrupted)
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* Fiber.join(late)).reason._tag, "Timeout")
        yield* TestClock.adjust(1)
        const calls = server.requests("tools/call").map(({ id }) => id)
        const cancelled = server.received.flatMap((message) =>
          message._tag === "Notification" && message.method === "notifications/cancelled"
            ? [message.params?.["requestId"]]
            : []
        )
        assert.deepStrictEqual(cancelled, calls)
        const before = server.received.length
        for (const id of calls) server.send(JsonRpc.success(id, { content: [] }))
        yield* TestClock.adjust(1)
        assert.strictEqual(server.received.length, before)
      }))

    it.effect(`${revision} · -32002 means ResourceNotFound; clients SHOULD still accept it`, () =>
      Effect.gen(function*() {
        const codes = modern ? [-32002, -32602] : [-32002]
        for (const code of codes) {
          const { client } = yield* open(
            revision,
            () => ScriptedServer.failure(code, "Resource not found", { uri: "a:b" })
          )
          const error = yield* Effect.flip(client.readResource("a:b"))
          assert.strictEqual(error.reason._tag, "ProtocolError")
          assert.strictEqual(fieldsOf(error).error?.reason, "ResourceNotFound")
        }
      }))
  })
}

it.effect("2026-07-28 · a resultType of any value unrecognized by the client MUST be considered invalid, for each method", () =>
  Effect.gen(function*() {
    const page = {
      tools: [],
      prompts: [],
      resources: [],
      resourceTemplates: [],
      contents: [],
      messages: [],
      content: []
    }
    for (const resultType of ["later", "", "Complete", 1, ["complete"]]) {
      const { client } = yield* open(
        "2026-07-28",
        () => ScriptedServer.success({ ...page, resultType, ttlMs: 0, cacheScope: "private" })
      )
      for (
        const effect of [
          client.listToolsPage(),
          client.listPrompts(),
          client.callTool("t"),
          client.readResource("a:b"),
          client.getPrompt("p")
        ] as ReadonlyArray<Effect.Effect<unknown, { readonly reason: { readonly _tag: string } }>>
      ) {
        assert.strictEqual((yield* Effect.flip(effect)).reason._tag, "InvalidResponse")
      }
    }
  }))
