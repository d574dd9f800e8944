/** Tests of the task, with a client in the same process and a store in memory. */
import { AsyncClient } from "skein/client"
import { memoryTasks } from "skein/tasks"
import { expect, test } from "vitest"
import { makeServer } from "../src/server.ts"

const server = makeServer(memoryTasks({ pollInterval: "100 millis" }), "10 millis")

/** Places an order for a user who answers each question with the same content, or declines. */
const order = async (content?: { readonly address: string }) => {
  const client = await AsyncClient.connect(server.transport(), {
    elicit: () => content === undefined ? { action: "decline" } : { action: "accept", content }
  })
  try {
    return await client.callTool("order", { item: "sencha", quantity: 2 })
  } finally {
    await client.close()
  }
}

test("ships an order to the address that the user gives", async () => {
  expect(await order({ address: "1 Tea Street" })).toMatchObject({
    content: [{ text: expect.stringMatching(/^2 of sencha are on their way as parcel-/) }]
  })
})

test("ships nothing without an address", async () => {
  expect(await order()).toMatchObject({
    isError: true,
    content: [{ text: "No address was given, and the reservation is released" }]
  })
})
