/** Tests of the server, with a client in the same process. */
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { expect, test } from "vitest"
import { Server } from "../src/server.ts"

/** Runs a test with a client. */
const withClient = (use: (client: Client.Client) => Promise<void>): Promise<void> =>
  Effect.gen(function*() {
    const { serve } = yield* McpServer.McpServer
    const client = yield* Client.make(InMemoryTransport.transport(serve))
    yield* Effect.promise(() => use(client))
  }).pipe(Effect.scoped, Effect.provide(Server), Effect.runPromise)

const run = Effect.runPromise

test("converts a value", () =>
  withClient(async (client) => {
    const { structuredContent } = await run(client.callTool("convert", { value: 212, from: "F", to: "C" }))
    expect(structuredContent).toEqual({ value: 100, unit: "C" })
  }))

test("explains to the model why a conversion fails", () =>
  withClient(async (client) => {
    expect(await run(client.callTool("convert", { value: 1, from: "km", to: "kg" }))).toMatchObject({
      isError: true,
      content: [{ text: "km and kg are units of different kinds. Read units://all for the kinds" }]
    })
    const unknown = await run(client.callTool("convert", { value: 1, from: "parsec", to: "km" }))
    expect(unknown).toMatchObject({ isError: true })
  }))

test("lists all units", () =>
  withClient(async (client) => {
    const { contents } = await run(client.readResource("units://all"))
    expect(contents).toMatchObject([{ text: expect.stringContaining("mass") }])
  }))
