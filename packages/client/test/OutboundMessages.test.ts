/** Validates every message that a client writes against the official schema of the negotiated revision. */
import { assert, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Exceptions from "../../protocol/test/oracle/Exceptions.ts"
import * as Spec from "../../protocol/test/oracle/Spec.ts"
import * as Validate from "../../protocol/test/oracle/Validate.ts"
import * as Client from "../src/Client.ts"
import * as Roots from "../src/Roots.ts"
import { ask, fork, form, Host, inputRequired, type Json, open, turns } from "./input/kit.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const questions = {
  "elicitation/create": form({ n: { type: "string", default: "x" } }),
  "roots/list": {},
  "sampling/createMessage": { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 1 }
}
const results: Readonly<Record<string, string>> = {
  "elicitation/create": "ElicitResult",
  "roots/list": "ListRootsResult",
  "sampling/createMessage": "CreateMessageResult",
  ping: "EmptyResult"
}

/**
 * Responds to simple requests. In stateless revisions tool calls take two rounds, and one of them never gets a result.
 */
const script = (revision: Revision.Revision): ScriptedServer.Script => ({ method, params }) => {
  const whole = { resultType: "complete", ttlMs: 0, cacheScope: "private" }
  switch (method) {
    case "tools/list":
      return ScriptedServer.success({ ...whole, tools: [] })
    case "resources/read":
      return ScriptedServer.success({ ...whole, contents: [] })
    case "subscriptions/listen":
      return "no response"
    case "tools/call":
      if (params?.["name"] === "hang") return "no response"
      return revision === "2026-07-28" && params?.["inputResponses"] === undefined
        ? inputRequired(
          Object.fromEntries(Object.entries(questions).map(([method, params]) => [method, { method, params }])),
          "s"
        )
        : ScriptedServer.success({ ...whole, content: [] })
    default:
      return ScriptedServer.success(whole)
  }
}

for (const revision of Revision.all) {
  it.effect(`${revision} · MUST NOT write anything that is not a valid MCP message: requests, notifications and responses`, () =>
    Effect.gen(function*() {
      const host = new Host()
      const changing = Roots.layerStream(
        Stream.fromIterable([[{ uri: "file:///a" }], [{ uri: "file:///b" }]]).pipe(
          Stream.mapEffect((roots) => Effect.as(turns(2), roots))
        )
      )
      const services = Layer.mergeAll(host.elicitation, host.sampling, changing)
      const { client, server } = yield* open(revision, services, script(revision), {
        revisions: [revision],
        enforceCapabilities: false
      })
      yield* turns(10)
      const calls: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        client.listToolsPage({ cursor: "c" }),
        client.callTool("t", { a: [null, 1.5, "é"] }, { onProgress: () => {} }),
        client.callTool("t"),
        client.listResourcesPage(),
        client.listResourceTemplatesPage(),
        client.readResource("a:b"),
        client.listPromptsPage(),
        client.getPrompt("p", { a: "1" }),
        client.complete({
          ref: { type: "ref/prompt", name: "p" },
          argument: { name: "a", value: "" },
          contextArguments: { b: "2" }
        }),
        client.complete({ ref: { type: "ref/resource", uri: "a:{b}" }, argument: { name: "b", value: "" } }),
        client.setLoggingLevel("info"),
        client.listToolsPage(),
        client.request(Method.Subscribe, { uri: "a:b" }),
        client.request(Method.Unsubscribe, { uri: "a:b" }),
        client.ping()
      ]
      for (const call of calls) yield* Effect.exit(call)
      const hanging = yield* fork(client.callTool("hang"))
      const following = yield* fork(Stream.runDrain(client.changes({ tools: true, uris: ["a:b"] })))
      yield* turns()
      yield* Fiber.interrupt(hanging)
      yield* Fiber.interrupt(following)
      const asked = new Map<JsonRpc.Id, string>()
      if (revision !== "2026-07-28") {
        const all = Object.entries({ ...questions, ping: {}, "x/unknown": {} })
        for (const [method, params] of all) {
          const { mode: _, ...older } = params as Json
          asked.set(method, method)
          const answer: Json = yield* ask(server, method, revision < "2025-11-25" ? older : params, method)
          const known = Method.request(method, revision) !== undefined
          assert.isTrue(known ? "result" in answer : answer.error.code === -32601, method)
        }
      }
      yield* turns()

      const methods = new Set(server.methods)
      const session = [
        "resources/subscribe",
        "resources/unsubscribe",
        "logging/setLevel",
        "notifications/roots/list_changed"
      ]
      const more = Revision.era(revision) === "session" ? session : ["subscriptions/listen"]
      for (const method of ["tools/call", "completion/complete", "notifications/cancelled", ...more]) {
        assert.isTrue(methods.has(method), method)
      }
      if (!Spec.present) return
      const document = Exceptions.load(revision)
      const failure = "JSONRPCErrorResponse" in document.definitions ? "JSONRPCErrorResponse" : "JSONRPCError"
      const check = (definition: string, value: unknown) =>
        assert.isUndefined(Validate.refusal(document, definition, value), `${definition}: ${JSON.stringify(value)}`)
      for (const message of server.received as ReadonlyArray<JsonRpc.Outbound>) {
        const written = JSON.parse(JsonRpc.encode(message))
        check("JSONRPCMessage", written)
        switch (written.method === undefined ? "answer" : written.id === undefined ? "notification" : "request") {
          case "request":
            check("ClientRequest", written)
            break
          case "notification":
            check("ClientNotification", written)
            break
          default:
            if ("error" in written) check(failure, written)
            else check(results[asked.get(written.id)!]!, written.result)
        }
      }
    }))

  if (Revision.era(revision) === "session") {
    it.effect(`${revision} · the initialize request MUST NOT be cancelled by clients`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(() => "no response")
        const opening = yield* fork(Effect.scoped(Client.make(server.transport, { revisions: [revision] })))
        yield* turns()
        assert.deepStrictEqual(server.methods, ["initialize"])
        yield* Fiber.interrupt(opening)
        const late = yield* fork(Effect.flip(Effect.scoped(Client.make(server.transport, { revisions: [revision] }))))
        yield* turns()
        yield* TestClock.adjust("61 seconds")
        assert.strictEqual((yield* Fiber.join(late)).reason._tag, "Timeout")
        assert.deepStrictEqual(server.methods, ["initialize", "initialize"])
      }))
  }
}

it.effect("2025-11-25 · Clients MUST treat requests without a mode field as form mode", () =>
  Effect.gen(function*() {
    const host = new Host()
    const { server } = yield* open("2025-11-25", host.layer)
    const { mode: _, ...params } = form({ n: { type: "string", default: "x" } })
    assert.deepInclude((yield* ask(server, "elicitation/create", params)).result, {
      action: "accept",
      content: { n: "x" }
    })
    assert.deepStrictEqual(host.seen.map(({ kind }) => kind), ["form"])
  }))
