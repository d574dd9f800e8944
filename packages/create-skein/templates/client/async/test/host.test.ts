/** Tests of the host, with a server in the same process. */
import { AsyncClientPool } from "skein/client"
import { afterEach, expect, test } from "vitest"
import { exampleServer } from "../src/exampleServer.ts"
import { answering, callTool, listTools } from "../src/host.ts"

let pool: AsyncClientPool
/** Opens a pool with the server, whose user answers each question with the same text. */
const open = async (answer: string | undefined): Promise<AsyncClientPool> => {
  const servers = { example: { transport: exampleServer.transport() } }
  pool = await AsyncClientPool.make(servers, answering(async () => answer))
  return pool
}
afterEach(() => pool.close())

test("lists the tools of all servers", async () => {
  expect(await listTools(await open(undefined))).toEqual([
    "example reserve: Reserves a table. Asks for how many people."
  ])
})

test("calls a tool, and answers its question", async () => {
  expect(await callTool(await open("4"), "example", "reserve", { day: "Monday" })).toBe("A table for 4 on Monday")
})

test("declines a question with an answer that is not valid", async () => {
  expect(await callTool(await open("some"), "example", "reserve", { day: "Monday" })).toBe("No table is reserved")
})
