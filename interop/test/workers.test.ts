/** Official clients at a server of several processes: their requests reach any worker. */
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import { manyClientsTest } from "../manyClientsTest.ts"
import type { ServerAddress } from "../testClient.ts"

let child: ChildProcess
let server: ServerAddress
let stderr = ""

beforeAll(async () => {
  const program = fileURLToPath(new URL("../fixtures/workersServer.ts", import.meta.url))
  child = spawn(process.execPath, ["--conditions=@skein/source", program], { stdio: ["ignore", "ignore", "pipe"] })
  child.stderr!.setEncoding("utf8").on("data", (text: string) => void (stderr += text))
  await eventually(() => expect(stderr).toMatch(/Listening on .* \(workers: 2\)/))
  server = { transport: "http", url: /http:\/\/\S+/.exec(stderr)![0] }
})

afterAll(() => {
  child.kill("SIGKILL")
})

describe("official clients at several workers", () => {
  manyClientsTest(() => server)
  it("has not ended a worker", () => expect(stderr).not.toContain("has exited"))
})
