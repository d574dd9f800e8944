// #region test
import { AsyncClient } from "skein/client"
import { expect, test } from "vitest"
import { shop } from "./promises.ts"

test("orders as much as the user says", async () => {
  await using client = await AsyncClient.connect(shop.transport(), {
    elicit: () => ({ action: "accept", content: { grams: 250 } })
  })
  const { content } = await client.callTool("order", { tea: "oolong" })
  expect(content).toMatchObject([{ text: expect.stringMatching(/: 250 g of oolong$/) }])
})
// #endregion
