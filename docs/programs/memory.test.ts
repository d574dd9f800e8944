// #region memory
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { TeaHouse } from "./tools.ts"

it.effect("two cups of sencha cost nine", () =>
  Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const client = yield* Client.make(InMemoryTransport.transport(server.serve))
    const { structuredContent } = yield* client.callTool("bill", { tea: "sencha", cups: 2 })
    expect(structuredContent).toEqual({ total: 9 })
  }).pipe(Effect.provide(TeaHouse)))
// #endregion
