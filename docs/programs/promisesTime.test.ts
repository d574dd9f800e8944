// #region time
import { AsyncServer } from "skein"
import { AsyncClient } from "skein/client"
import { expect, test, vi } from "vitest"

const kettle = new AsyncServer({ name: "kettle", version: "1.0.0" }).tool("boil", {}, async () => {
  await new Promise((resolve) => setTimeout(resolve, 20_000))
  return "The water boils"
})

test("boils water", async () => {
  await using client = await AsyncClient.connect(kettle.transport())
  vi.useFakeTimers()
  let isOver = false
  const boiling = client.callTool("boil").finally(() => isOver = true)
  while (!isOver) await vi.advanceTimersByTimeAsync(1_000)
  vi.useRealTimers()
  expect((await boiling).content).toMatchObject([{ text: "The water boils" }])
})
// #endregion
