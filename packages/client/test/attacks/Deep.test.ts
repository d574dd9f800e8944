/** JSON that is nested deeper than the stack, in every place that a client reads. The client survives all of it. */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import * as Logging from "../../src/Logging.ts"
import { settle, until } from "../http/support/connection.ts"
import { deep, handshakeOf, type Json, result } from "./kit.ts"

const complete = (body: string, ttl = 60_000) =>
  `{"resultType":"complete","ttlMs":${ttl},"cacheScope":"private",${body}}`

/** Fails on a defect. Accepts a success, and a typed error of the client. */
const sound = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return
    assert.isFalse(Cause.hasDies(exit.cause), Cause.pretty(exit.cause))
    assert.include(String(exit), "ClientError")
  })

const bodies = (value: string): ReadonlyArray<readonly [method: string, body: string]> => [
  ["tools/list", `"tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":{"x":${value}}}]`],
  ["tools/list", `"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":${value}}}}]`],
  ["tools/list", `"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":${value}}]`],
  ["tools/list", `"tools":[{"name":${value},"inputSchema":${value}}]`],
  ["tools/list", `"tools":${value}`],
  ["tools/list", `"tools":[],"nextCursor":${value}`],
  ["tools/list", `"tools":[],"_meta":{"x":${value}}`],
  ["resources/list", `"resources":[{"uri":"a:b","name":"x","_meta":{"x":${value}}}],"_meta":{"x":${value}}`],
  ["prompts/list", `"prompts":[{"name":"x","arguments":${value}}]`],
  ["resources/read", `"contents":[{"uri":"a:b","text":"x","_meta":{"x":${value}}}]`],
  ["tools/call", `"content":[],"structuredContent":${value}`],
  ["tools/call", `"content":[{"type":"text","text":"x","_meta":{"x":${value}}}],"structuredContent":{"a":${value}}`],
  ["tools/call", `"content":${value}`],
  ["prompts/get", `"messages":[{"role":"user","content":${value}}]`],
  ["completion/complete", `"completion":${value}`]
]

const call = (client: Client.Client, method: string): Effect.Effect<unknown, unknown> => {
  switch (method) {
    case "tools/list":
      return client.listToolsPage()
    case "resources/list":
      return client.listResourcesPage()
    case "prompts/list":
      return client.listPromptsPage()
    case "resources/read":
      return client.readResource("a:b")
    case "tools/call":
      return client.callTool("t", {})
    case "prompts/get":
      return client.getPrompt("p")
    default:
      return client.complete({ ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } })
  }
}

it("the test values are nested deeper than the stack", () => {
  for (const text of Object.values(deep)) assert.throws(() => JSON.stringify(JSON.parse(text)), RangeError)
})

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(`${revision} · JSON that is nested deeper than the stack`, () => {
    for (const [shape, value] of Object.entries(deep)) {
      it.live(`${shape}: reads a result, or fails with a typed error`, () =>
        Effect.gen(function*() {
          for (const [method, body] of bodies(value)) {
            const server = ScriptedServer.make(
              ScriptedServer.handshake(revision, ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
                sendText(result(id, complete(body))))
            )
            yield* Effect.scoped(Effect.gen(function*() {
              const client = yield* Client.make(server.transport)
              yield* sound(call(client, method))
              yield* sound(call(client, method))
            }))
          }
        }))

      it.live(`${shape}: checks a result against a listed outputSchema`, () =>
        Effect.gen(function*() {
          const schemas = [
            `{"type":"object","properties":{"a":${value}}}`,
            `{"type":"object","$defs":{"a":${value}}}`,
            `{"enum":[${value}]}`,
            `{"const":${value}}`,
            `{"type":"object","uniqueItems":true}`
          ]
          for (const schema of schemas) {
            const server = ScriptedServer.make(
              ScriptedServer.handshake(revision, ({ id, method }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
                sendText(result(
                  id,
                  complete(
                    method === "tools/list"
                      ? `"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":${schema}}]`
                      : `"content":[],"structuredContent":{"a":${value},"b":[${value},${value}]}`
                  )
                )))
            )
            yield* Effect.scoped(Effect.gen(function*() {
              const client = yield* Client.make(server.transport)
              yield* sound(client.listTools())
              yield* sound(client.callTool("t", {}))
            }))
          }
        }))

      it.live(`${shape}: survives notifications, errors and capabilities`, () =>
        Effect.gen(function*() {
          const server = ScriptedServer.make(handshakeOf(
            revision,
            ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
              sendText(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"x","data":${value}}}`),
            `{"tools":${value},"x":${value},"logging":{},"experimental":{"a":${value}}}`
          ))
          const client = yield* Client.make(server.transport, { enforceCapabilities: false })
          const seen: Array<string> = []
          yield* Effect.forkScoped(
            Stream.runForEach(client.notifications, ({ method }) => Effect.sync(() => void seen.push(method))),
            { startImmediately: true }
          )
          for (
            const method of [
              "notifications/resources/updated",
              "notifications/tools/list_changed",
              "notifications/message",
              "notifications/elicitation/complete",
              "notifications/subscriptions/acknowledged",
              "notifications/progress",
              "notifications/cancelled",
              "notifications/other"
            ]
          ) {
            for (
              const params of [
                `{"a":${value}}`,
                value,
                `{"_meta":${value},"uri":${value},"notifications":${value},"requestId":${value},"progressToken":${value},"elicitationId":${value},"data":${value},"level":"info"}`
              ]
            ) {
              server.sendText(`{"jsonrpc":"2.0","method":"${method}","params":${params}}`)
            }
          }
          yield* sound(client.listToolsPage())
          assert.isDefined(client.capabilities)
          yield* until(() => seen.includes("notifications/other"))
        }).pipe(Effect.scoped))
    }

    it.live("continues to forward log messages after a deeply nested one", () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(ScriptedServer.handshake(revision, () => "no response"))
        const client = yield* Client.make(server.transport)
        const forwarding = yield* Effect.forkScoped(Logging.forward(client), { startImmediately: true })
        server.sendText(
          `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${deep.arrays}}}`
        )
        yield* settle
        assert.isUndefined(forwarding.pollUnsafe())
      }).pipe(Effect.scoped))
  })
}
