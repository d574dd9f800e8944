/**
 * Uses the installed package `skein` as an application does, on the runtime that executes this program: a server on stdio
 * and over HTTP, and a client, in the newest revision with sessions and in the one without. Prints a line per check.
 */
import assert from "node:assert/strict"
import { argv, execPath } from "node:process"
import { AsyncServer, VisibleError } from "skein"
import { AsyncClient } from "skein/client"
import { z } from "zod"

const server = new AsyncServer({ name: "check", version: "1.0.0" })
  .tool("greet", { input: z.object({ name: z.string() }) }, async ({ name }, { elicit, progress }) => {
    const answer = await elicit("For how many?", z.object({ people: z.int() }))
    if (answer.action !== "accept") throw new VisibleError("Nobody comes")
    await progress({ progress: 1, total: 1 })
    return `Hello, ${name} and ${answer.content.people}!`
  })
  .resource("check://menu", {}, () => "Tea")

/** The arguments with which the runtime executes this program. */
const [program, ...flags] = [argv[1]!, ...argv.slice(2)]

const check = async (name: string, target: Parameters<typeof AsyncClient.connect>[0]): Promise<void> => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    const client = await AsyncClient.connect(target, {
      revisions: [revision],
      elicit: () => ({ action: "accept", content: { people: 2 } })
    })
    try {
      let reports = 0
      const { content } = await client.callTool("greet", { name: "Ada" }, { onProgress: () => void reports++ })
      assert.deepEqual(content, [{ type: "text", text: "Hello, Ada and 2!" }])
      assert.equal(reports, 1)
      assert.equal((await client.readResource("check://menu")).contents.length, 1)
      console.log(`ok ${name} ${revision}`)
    } finally {
      await client.close()
    }
  }
}

if (flags.includes("--serve")) server.runStdio()
else {
  await check("stdio", { command: execPath, args: [...flags, program, "--serve"] })
  const { close, url } = await server.listen({ port: 0 })
  await check("http", url)
  await close()
}
