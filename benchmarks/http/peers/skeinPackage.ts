/** The package `skein` on `node:http`, with its default checks. */
import { AsyncServer } from "skein"
import { z } from "zod"

const more = Number(process.argv.find((arg) => arg.startsWith("--tools="))?.slice("--tools=".length) ?? 2) - 2

const server = new AsyncServer({ name: "skein", version: "1.0.0" })
  .tool(
    "echo",
    { description: "Repeats a message", input: z.object({ message: z.string(), times: z.int() }) },
    ({ message, times }) => message.repeat(times)
  )
  .tool(
    "count",
    { description: "Counts and reports progress", input: z.object({ to: z.int() }) },
    async ({ to }, { progress }) => {
      for (let done = 1; done <= to; done++) await progress({ progress: done, total: to })
      return `Counted to ${to}`
    }
  )

for (let index = 0; index < more; index++) {
  server.tool(`tool-${index}`, {
    description: `Does thing number ${index}`,
    input: z.object({ path: z.string(), lines: z.int() })
  }, () => "")
}

// The defaults of 10,000 are slightly too low for the numbers here.
const limits = { maxInFlightRequests: 20_000, maxStreams: 20_000, maxSessions: 20_000 }
const { url } = await server.listen({ port: 0, limits })
console.log(new URL(url).port)
