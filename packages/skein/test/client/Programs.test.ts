/** Programs that were written for `@skein/client`, after a change of their imports. */
import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import { AsyncServer } from "skein"
import { AsyncClient, AsyncClientPool } from "skein/client"
import { z } from "zod"
import * as Host from "./fixtures/promisesHost.ts"
import * as Pool from "./fixtures/promisesPool.ts"
import * as Template from "./fixtures/templateHost.ts"

const fixture = (name: string): string => join(import.meta.dirname, "fixtures", `${name}.ts`)
const serverArgs = ["--conditions=@skein/source", fixture("server")]

describe("programs for @skein/client whose imports were changed", () => {
  it("promisesHost connects to a process, adds, and watches its tools", async () => {
    const asked: Array<string> = []
    const client = await Host.connect(serverArgs, async (question) => {
      asked.push(question)
      return "4"
    })
    try {
      expect(await Host.add(client, 1, 2, AbortSignal.timeout(60_000))).toBe(3)
      expect(await client.callTool("ask")).toMatchObject({ content: [{ text: "accept" }] })
      expect(asked).toEqual(["How many? people: "])
      const shown: Array<ReadonlyArray<string>> = []
      const watching = Host.watch(client, (tools) => shown.push(tools))
      await expect.poll(() => shown).toEqual([["greet", "add", "ask"]])
      await client.close()
      await watching
    } finally {
      await client.close()
    }
  })

  it("promisesPool opens the servers of a file, lists them, and makes a turn of a model", async () => {
    const folder = await mkdtemp(join(tmpdir(), "skein-pool-"))
    const file = join(folder, "mcp.json")
    const mcpServers = { good: { command: process.execPath, args: serverArgs }, bad: { command: "no-such-program" } }
    await writeFile(file, JSON.stringify({ mcpServers }))
    const pool = await Pool.open(file, async (question) => question === "good: How many?")
    try {
      expect(await Pool.inventory(pool)).toEqual([
        "good greet",
        "good add",
        "good ask",
        expect.stringMatching(/^bad: .*no-such-program/)
      ])
      const model: Pool.Model = async ({ tools }) => {
        expect(tools.map(({ name }) => name)).toEqual(["good_greet", "good_add", "good_ask"])
        return [
          { id: "1", name: "good_greet", input: { name: "Ada" } },
          { id: "2", name: "made_up", input: {} }
        ]
      }
      expect(await Pool.turn(pool, model, AbortSignal.timeout(60_000))).toMatchObject([
        { id: "1", content: [{ text: "Hello, Ada" }], isError: false },
        { id: "2", content: [{ text: "The toolkit has no tool named \"made_up\"" }], isError: true }
      ])
    } finally {
      await pool.close()
      await rm(folder, { recursive: true })
    }
  })

  it("quickClient calls a server over HTTP", async () => {
    const server = new AsyncServer({ name: "hello", version: "1.0.0" }).tool(
      "greet",
      { description: "Greets", input: z.object({ name: z.string() }) },
      ({ name }) => `Hello, ${name}!`
    )
    const { close, url } = await server.listen({ port: 0 })
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [
        "--conditions=@skein/source",
        fixture("quickClient"),
        url
      ])
      expect(stdout).toContain("greet: Greets")
      expect(stdout).toContain("Hello, Ada!")
    } finally {
      await close()
    }
  })

  it("the template's host answers questions field by field", async () => {
    const server = new AsyncServer({ name: "example", version: "1.0.0" })
      .tool("reserve", { description: "Reserves" }, async (_, { elicit }) => {
        const answer = await elicit("For how many?", z.object({ people: z.int() }))
        return answer.action === "accept" ? `A table for ${answer.content.people}` : "No table"
      })
    for (const [text, result] of [["4", "A table for 4"], ["some", "No table"]] as const) {
      const pool = await AsyncClientPool.make(
        { example: { transport: server.transport() } },
        Template.answering(async () => text)
      )
      expect(await Template.listTools(pool)).toEqual(["example reserve: Reserves"])
      expect(await Template.callTool(pool, "example", "reserve")).toBe(result)
      await pool.close()
    }
  })

  it("a client is closed at the end of a block", async () => {
    const server = new AsyncServer({ name: "s", version: "1.0.0" })
    let ended: Promise<unknown>
    {
      await using client = await AsyncClient.connect(server.transport())
      ended = client.ended()
    }
    expect(await ended).toEqual({ _tag: "ClosedByUs" })
  })
})
