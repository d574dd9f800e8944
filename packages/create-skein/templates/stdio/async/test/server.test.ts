/** Tests of the server, with a client in the same process. */
import { AsyncClient } from "skein/client"
import { afterEach, beforeEach, expect, test } from "vitest"
import { server } from "../src/server.ts"

let client: AsyncClient
beforeEach(async () => {
  client = await AsyncClient.connect(server.transport())
})
afterEach(() => client.close())

test("converts a value", async () => {
  const { structuredContent } = await client.callTool("convert", { value: 212, from: "F", to: "C" })
  expect(structuredContent).toEqual({ value: 100, unit: "C" })
})

test("explains to the model why a conversion fails", async () => {
  expect(await client.callTool("convert", { value: 1, from: "km", to: "kg" })).toMatchObject({
    isError: true,
    content: [{ text: "km and kg are units of different kinds. Read units://all for the kinds" }]
  })
  expect(await client.callTool("convert", { value: 1, from: "parsec", to: "km" })).toMatchObject({ isError: true })
})

test("lists all units", async () => {
  const { contents } = await client.readResource("units://all")
  expect(contents).toMatchObject([{ text: expect.stringContaining("mass") }])
})
