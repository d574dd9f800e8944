/** The server of `promisesHost.ts`. */
import { AsyncServer } from "skein"
import { z } from "zod"

new AsyncServer({ name: "calculator", version: "1.0.0" })
  .tool(
    "add",
    { input: z.object({ a: z.number(), b: z.number() }), output: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ sum: a + b })
  )
  .tool("greet", {}, async (_, { elicit, log }) => {
    log.info("greeting")
    const answer = await elicit("Who are you?", z.object({ name: z.string() }))
    return answer.action === "accept" ? `Hello, ${answer.content.name}!` : "Hello!"
  })
  .runStdio()
