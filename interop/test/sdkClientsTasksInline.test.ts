/**
 * Official clients without tasks: a call of a task waits for its result. The call reports the progress of the task,
 * sends its requests, and cancels the task when it is cancelled.
 */
import type { Revision } from "@skein/protocol/Revision"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { AnyServer, ConnectInteractive, InteractiveClient } from "../testClient.ts"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import * as Tasks from "../fixtures/skeinTasks.ts"
import { tasksServers } from "../fixtures/skeinTasksServers.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"

const servers = tasksServers()

const { http, stdio } = servers

const pairings: ReadonlyArray<readonly [string, ConnectInteractive, Revision, () => AnyServer]> = [
  ["sdk-v1", SdkV1.connectInteractive, "2024-11-05", http],
  ["sdk-v1", SdkV1.connectInteractive, "2025-06-18", http],
  ["sdk-v1", SdkV1.connectInteractive, "2025-11-25", http],
  ["sdk-v2", SdkV2.connectInteractive, "2025-11-25", http],
  ["sdk-v2", SdkV2.connectInteractive, "2026-07-28", http],
  ["sdk-v2", SdkV2.connectInteractive, "2026-07-28", stdio]
]

for (const [name, connect, revision, server] of pairings) {
  const modern = revision === "2026-07-28"
  describe(`${revision} · ${name} without tasks · ${server === http ? "HTTP" : "stdio"}`, () => {
    let client: InteractiveClient
    const text = async (name: string) => textOf(await client.call(name, {}))
    beforeAll(async () => {
      client = await connect(server(), { revision })
    })
    afterAll(async () => {
      expect(client.clientErrors).toEqual([])
      await client.close()
    })

    it("returns the result, the tool error or the protocol error of the task", async () => {
      const sum = await client.call("sum", { a: 1, b: 2 })
      // Older revisions have no structured content.
      if (revision > "2025-06-17") expect(sum.structuredContent).toEqual({ sum: 3 })
      expect(JSON.parse(String(textOf(sum)))).toEqual({ sum: 3 })
      expect(await client.call("fail", {})).toMatchObject({ isError: true, content: [{ text: Tasks.failure }] })
      const { code, data } = Tasks.refusal
      await expect(client.call("refuse", {})).rejects.toMatchObject({ code, data })
    })

    it("rejects a call without a task of a tool that requires one, if the revision has tasks", async () => {
      if (revision < "2025-11-25") return expect(await text("must")).toBe("As a task")
      const rejection = modern
        ? { code: -32021, data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } } }
        : { code: -32601 }
      await expect(client.call("must", {})).rejects.toMatchObject(rejection)
    })

    it("reports the progress of the task", async () => {
      const progress: Array<number> = []
      const cake = client.call("bake", {}, { onProgress: (report) => void progress.push(report.progress) })
      for (const steps of [[1], [1, 2]]) {
        await eventually(() => expect(progress).toEqual(steps))
        await eventually(async () => expect(await text("release")).toBe("1"))
      }
      expect(textOf(await cake)).toBe("A cake")
    })

    it("sends the requests of the task during the call, if the revision has them", async () => {
      if (revision === "2024-11-05") {
        expect(await client.call("interview", {})).toMatchObject({ isError: true })
        return expect(await client.call("twice", {})).toMatchObject({ isError: true })
      }
      const asked = client.asked as Array<string>
      asked.length = 0
      expect(await text("interview")).toBe("Ada\nAda said\nfile:///home/Ada")
      expect(asked.splice(0).toSorted()).toEqual(["elicitation/create", "roots/list", "sampling/createMessage"])
      expect(await text("twice")).toBe("Ada Ada")
      expect(asked.splice(0)).toEqual(["elicitation/create", "elicitation/create"])
    })

    it("cancels the task of a cancelled call, which runs its compensation", async () => {
      const before = Number(await text("undone"))
      const controller = new AbortController()
      const call = client.call("stuck", {}, { signal: controller.signal, onProgress: () => controller.abort() })
      await expect(call).rejects.toThrow(/.+/)
      await eventually(async () => expect(Number(await text("undone"))).toBe(before + 1))
    })
  })
}
