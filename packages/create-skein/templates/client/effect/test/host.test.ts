/** Tests of the host, with a server in the same process. */
import { expect, it } from "@effect/vitest"
import * as ClientPool from "@skein/client/ClientPool"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ExampleServer } from "../src/exampleServer.ts"
import { answering, callTool, listTools } from "../src/host.ts"

/** A pool with the server, whose user answers each question with the same text. */
const servers = (answer: string | undefined) =>
  Layer.unwrap(Effect.gen(function*() {
    const { serve } = yield* McpServer.McpServer
    return ClientPool.layer({ example: { transport: InMemoryTransport.transport(serve) } })
  })).pipe(Layer.provide([ExampleServer, answering(() => Effect.succeed(answer))]))

it.effect("lists the tools of all servers", () =>
  Effect.gen(function*() {
    expect(yield* listTools).toEqual(["example reserve: Reserves a table. Asks for how many people."])
  }).pipe(Effect.provide(servers(undefined))))

it.effect("calls a tool, and answers its question", () =>
  Effect.gen(function*() {
    expect(yield* callTool("example", "reserve", { day: "Monday" })).toBe("A table for 4 on Monday")
  }).pipe(Effect.provide(servers("4"))))

it.effect("declines a question with an answer that is not valid", () =>
  Effect.gen(function*() {
    expect(yield* callTool("example", "reserve", { day: "Monday" })).toBe("No table is reserved")
  }).pipe(Effect.provide(servers("some"))))
