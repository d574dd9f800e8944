/**
 * Time in the tests of a server. Vitest's fake timers move the time of its handlers. The timeouts of calls stay in real time:
 * the runtime measures them by the monotonic clock of the process, so that a clock that is set does not end calls.
 */
import { afterEach, describe, expect, it, vi } from "vitest"
import { AsyncServer } from "skein"
import { AsyncClient } from "skein/client"

const kettle = () =>
  new AsyncServer({ name: "kettle", version: "1.0.0" }).tool("boil", {}, async () => {
    const start = Date.now()
    await new Promise((resolve) => setTimeout(resolve, 20_000))
    return `The water boils after ${Date.now() - start} ms`
  })

/** Waits for a promise while fake time passes, a second at a time: the handler may not have begun to wait. */
const passing = async <A>(promise: Promise<A>): Promise<A> => {
  let isOver = false
  const end = () => void (isOver = true)
  promise.then(end, end)
  while (!isOver) await vi.advanceTimersByTimeAsync(1_000)
  return promise
}

const timers: Record<string, Parameters<typeof vi.useFakeTimers>[0]> = {
  "all timers": {},
  "setTimeout and Date": { toFake: ["setTimeout", "clearTimeout", "Date"] }
}

for (const [title, config] of Object.entries(timers)) {
  describe(`fake timers: ${title}`, () => {
    afterEach(() => void vi.useRealTimers())

    it("end a handler that waits when its time has passed", async () => {
      const client = await AsyncClient.connect(kettle().transport())
      vi.useFakeTimers(config)
      const { content } = await passing(client.callTool("boil"))
      expect(content).toMatchObject([{ text: "The water boils after 20000 ms" }])
      vi.useRealTimers()
      await client.close()
    })

    it("do not move the timeout of a call", async () => {
      const client = await AsyncClient.connect(kettle().transport())
      vi.useFakeTimers(config)
      const { content } = await passing(client.callTool("boil", {}, { timeout: "10 seconds" }))
      expect(content).toHaveLength(1)
      vi.useRealTimers()
      await client.close()
    })
  })
}
