// #region test
import { AsyncServer } from "skein"
import { AsyncClient } from "skein/client"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { temperature } from "../src/temperature.ts"

const service = vi.spyOn(globalThis, "fetch")

let client: AsyncClient
beforeEach(async () => {
  const server = new AsyncServer({ name: "test", version: "1.0.0" }).use(temperature)
  client = await AsyncClient.connect(server.transport())
})
afterEach(() => client.close())

test("returns the temperature at a place", async () => {
  service.mockResolvedValueOnce(Response.json({ current: { temperature_2m: 21.5 } }))
  expect(await client.callTool("temperature", { latitude: 52.5, longitude: 13.4 })).toMatchObject({
    structuredContent: { celsius: 21.5 }
  })
})

test("explains to the model that the service fails", async () => {
  service.mockResolvedValueOnce(new Response("", { status: 503 }))
  expect(await client.callTool("temperature", { latitude: 52.5, longitude: 13.4 })).toMatchObject({
    isError: true,
    content: [{ text: "The weather service answered with 503" }]
  })
})
// #endregion
