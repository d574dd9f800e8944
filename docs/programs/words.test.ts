// #region test
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { expect, test } from "vitest"
import { wordCount } from "./words.ts"

const Server = McpServer.layer({ name: "test", version: "1.0.0" }, wordCount)

const call = (args: Record<string, unknown>) =>
  Effect.gen(function*() {
    const { serve } = yield* McpServer.McpServer
    const client = yield* Client.make(InMemoryTransport.transport(serve))
    return yield* client.callTool("word_count", args)
  }).pipe(Effect.scoped, Effect.provide(Server), Effect.runPromise)

test("counts the words of a text", async () => {
  expect(await call({ text: "to be or not" })).toMatchObject({ structuredContent: { words: 4 } })
})

test("explains to the model what is missing", async () => {
  expect(await call({})).toMatchObject({ isError: true, content: [{ text: "Pass a text or a url" }] })
})
// #endregion
