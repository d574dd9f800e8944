/** Tests of the host, with a server in the same process. */
import * as ClientPool from "@skein/client/ClientPool"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import { afterEach, expect, test } from "vitest"
import { ExampleServer } from "../src/exampleServer.ts"
import { type Host, openHost } from "../src/host.ts"

const servers = ClientPool.layer({ example: { transport: InMemoryTransport.fromLayer(ExampleServer) } })

let host: Host
/** Opens a host whose user answers each question with the same text. */
const open = (answer: string | undefined): Host => host = openHost(servers, async () => answer)
afterEach(() => host.close())

test("lists the tools of all servers", async () => {
  expect(await open(undefined).listTools()).toEqual(["example reserve: Reserves a table. Asks for how many people."])
})

test("calls a tool, and answers its question", async () => {
  expect(await open("4").callTool("example", "reserve", { day: "Monday" })).toBe("A table for 4 on Monday")
})

test("declines a question with an answer that is not valid", async () => {
  expect(await open("some").callTool("example", "reserve", { day: "Monday" })).toBe("No table is reserved")
})
