// #region test
import { AsyncClient } from "@skein/client/AsyncClient"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import { expect, test } from "vitest"
import { Shop } from "./promises.ts"

test("orders as much as the user says", async () => {
  await using client = await AsyncClient.connect(InMemoryTransport.fromLayer(Shop), {
    elicit: () => ({ action: "accept", content: { grams: 250 } })
  })
  const { content } = await client.callTool("order", { tea: "oolong" })
  expect(content).toMatchObject([{ text: expect.stringMatching(/: 250 g of oolong$/) }])
})
// #endregion
