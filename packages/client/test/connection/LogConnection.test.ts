/** The log of a client's connection. */
import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Http from "../../src/Http.ts"
import { type Json } from "../http/support/connection.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const logged = <A, E, R>(effect: Effect.Effect<A, E, R>, minimum: LogLevel.LogLevel = "Debug") => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${[message].flat().join(" ")}`))
  return Effect.as(effect, lines).pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, minimum)
  )
}

describe("a new client", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · logs the revision and the declared capabilities in one line`, () =>
      Effect.gen(function*() {
        const { transport } = ScriptedServer.make(ScriptedServer.handshake(revision))
        const made = Client.make(transport, { revisions: [revision] })
        const agreed = `Debug connected to the server: ${revision}, scripted 1.0.0, client capabilities `
        const tasks = revision === "2026-07-28" ? `"extensions":{"io.modelcontextprotocol/tasks":{}}` : undefined
        assert.deepStrictEqual(yield* logged(made), [`${agreed}{${tasks ?? ""}}`])
        const form = () => Effect.succeed(Elicitation.decline)
        assert.deepStrictEqual(yield* logged(Effect.provide(made, Elicitation.layer({ form }))), [
          revision === "2025-11-25"
            ? `${agreed}{"elicitation":{"form":{}},"tasks":{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}}}}}`
            : `${agreed}{"elicitation":{"form":{}}${tasks === undefined ? "" : `,${tasks}`}}`
        ])
        const without = Client.make(transport, { revisions: [revision], tasks: false })
        assert.deepStrictEqual(yield* logged(without), [`${agreed}{}`])
        assert.deepStrictEqual(yield* logged(made, "Info"), [])
      }))
  }

  it.live("logs the HTTP mode and the label of the server", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respond(404)))
      const options = { revisions: ["2025-11-25"], label: "tea" } as const
      const lines = yield* logged(Client.make(Http.transport({ url: server.url }), options))
      assert.strictEqual(lines.length, 1)
      assert.match(
        lines[0]!,
        /^Debug connected to tea: 2025-11-25 over \S+, scripted 1,/
      )
    }))

  const claims: ReadonlyArray<readonly [string, JsonObject]> = [
    ["of a million characters", { name: "n".repeat(1_000_000), version: "v".repeat(1_000_000) }],
    ["with line breaks", { name: "x\nERROR all is lost\u001b[2J\u202e", version: "1\r\n2" }]
  ]
  for (const [what, serverInfo] of claims) {
    it.effect(`keeps a server name ${what} within one short line`, () =>
      Effect.gen(function*() {
        const { transport } = ScriptedServer.make(({ method }) =>
          method === "initialize"
            ? ScriptedServer.success({ protocolVersion: "2025-11-25", capabilities: {}, serverInfo })
            : ScriptedServer.success({})
        )
        const lines = yield* logged(Client.make(transport, { revisions: ["2025-11-25"] }))
        assert.strictEqual(lines.length, 1)
        assert.isBelow(lines[0]!.length, 512)
        assert.notMatch(lines[0]!, /[\p{Cc}\p{Cf}]/u)
      }))
  }
})
