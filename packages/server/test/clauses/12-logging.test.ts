/** Logging (server/utilities/logging), over every transport. */
import { expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Logging from "@skein/server/Logging"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

const logging = Effect.gen(function*() {
  yield* Effect.logInfo("low")
  yield* Effect.logWarning({ high: [1, null] }).pipe(Logging.named("db"))
  return "done"
})
const server = kit.server(Tool.layer(Tool.make("work"), () => logging))

for (const [{ connect, name }, revision] of transports.each) {
  const session = Revision.era(revision) === "session"

  it.live(`${revision} · ${name} · sends messages at or above the requested level before the response only`, () =>
    kit.logged(() =>
      Effect.gen(function*() {
        const client = yield* connect(server, revision)
        if (session) expect((yield* client.request("logging/setLevel", { level: "warning" })).result).toEqual({})
        const _meta = session ? undefined : { "io.modelcontextprotocol/logLevel": "warning" }
        yield* client.request("tools/call", { name: "work", ...(_meta === undefined ? undefined : { _meta }) })
        expect(client.received).toEqual([{
          jsonrpc: "2.0",
          method: "notifications/message",
          params: { level: "warning", logger: "db", data: { high: [1, null] } }
        }])
        yield* client.request("tools/call", { name: "work" })
        expect(client.received.length).toBe(session ? 2 : 1)
      })
    ))

  it.live(`${revision} · ${name} · sends from info on before setLevel in a session, and nothing without a level otherwise`, () =>
    kit.logged(() =>
      Effect.gen(function*() {
        const client = yield* connect(server, revision)
        yield* client.request("tools/call", { name: "work" })
        expect(client.received.map(({ params }) => params.level)).toEqual(session ? ["info", "warning"] : [])
      })
    ))

  it.live(`${revision} · ${name} · refuses an unknown level with -32602`, () =>
    Effect.gen(function*() {
      const client = yield* connect(server, revision)
      const { error } = session
        ? yield* client.request("logging/setLevel", { level: "loud" })
        : yield* client.request("tools/call", { name: "work", _meta: { "io.modelcontextprotocol/logLevel": "loud" } })
      expect(error.code).toBe(-32602)
    }))
}
