/** Tests of the server, with a client in the same process. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { Server } from "../src/server.ts"

const connect = Effect.gen(function*() {
  const { serve } = yield* McpServer.McpServer
  return yield* Client.make(InMemoryTransport.transport(serve))
})

it.effect("converts a value", () =>
  Effect.gen(function*() {
    const client = yield* connect
    const { structuredContent } = yield* client.callTool("convert", { value: 212, from: "F", to: "C" })
    expect(structuredContent).toEqual({ value: 100, unit: "C" })
  }).pipe(Effect.provide(Server)))

it.effect("explains to the model why a conversion fails", () =>
  Effect.gen(function*() {
    const client = yield* connect
    expect(yield* client.callTool("convert", { value: 1, from: "km", to: "kg" })).toMatchObject({
      isError: true,
      content: [{ text: "km and kg are units of different kinds. Read units://all for the kinds" }]
    })
    expect(yield* client.callTool("convert", { value: 1, from: "parsec", to: "km" })).toMatchObject({ isError: true })
  }).pipe(Effect.provide(Server)))

it.effect("lists all units", () =>
  Effect.gen(function*() {
    const client = yield* connect
    const { contents } = yield* client.readResource("units://all")
    expect(contents).toMatchObject([{ text: expect.stringContaining("mass") }])
  }).pipe(Effect.provide(Server)))
