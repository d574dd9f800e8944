// #region test
import { AsyncClient } from "@skein/client/AsyncClient"
import { AsyncServer } from "@skein/server/AsyncServer"
import { afterEach, beforeEach, expect, test } from "vitest"
import { wordCount } from "./words.ts"

let client: AsyncClient
beforeEach(async () => {
  const server = new AsyncServer({ name: "test", version: "1.0.0" }).use(wordCount)
  client = await AsyncClient.connect(server.transport())
})
afterEach(() => client.close())

test("counts the words of a text", async () => {
  expect(await client.callTool("word_count", { text: "to be or not" })).toMatchObject({
    structuredContent: { words: 4 }
  })
})

test("explains to the model what is missing", async () => {
  expect(await client.callTool("word_count", {})).toMatchObject({
    isError: true,
    content: [{ text: "Pass a text or a url" }]
  })
})
// #endregion
