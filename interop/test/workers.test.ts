/**
 * Official clients at a server of several processes. Each client has its own session and a stream; its requests reach any
 * worker. `WORKER_ROUNDS` sets how often the clients come: 3 times by default.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import { textOf } from "../interactiveClientTests.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import type { InteractiveClient, ServerAddress } from "../testClient.ts"

const rounds = Number(process.env["WORKER_ROUNDS"] ?? "3")
const clientsOfEach = 5
const calls = 20

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

const visit = async (connect: (user: string) => Promise<InteractiveClient>, user: string): Promise<void> => {
  const client = await connect(user)
  try {
    const unwatch = await client.watch({ resource: "test://watched" })
    for (let n = 0; n < calls; n++) {
      expect(textOf(await client.call("region", { region: `${user}/${n}` }))).toBe(`Working in ${user}/${n}`)
    }
    expect(textOf(await client.call("model", {}))).toBe(`${user} said`)
    expect(textOf(await client.call("places", {}))).toBe(`file:///home/${user}`)
    await client.call("touch", { uri: "test://watched" })
    await eventually(() => expect(client.received.updated).toContain("test://watched"))
    await unwatch()
    await client.terminate()
  } finally {
    await client.close()
  }
}

describe("official clients at several workers", () => {
  it("call, answer questions and receive changes, each in its session", async () => {
    for (let round = 0; round < rounds; round++) {
      await Promise.all(
        Array.from({ length: clientsOfEach }, (_, n) => [
          visit((user) => SdkV1.connectInteractive(server, { user }), `v1-${round}-${n}`),
          visit((user) => SdkV2.connectInteractive(server, { user, revision: "2025-11-25" }), `v2-${round}-${n}`)
        ]).flat()
      )
    }
    expect(stderr).not.toContain("has exited")
  })
})
