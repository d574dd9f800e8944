/**
 * The official clients as they come, without tasks: a call of a task waits for its result. It tells the progress, asks what the task
 * asks, and ends the task when it is cancelled.
 */
import type { Revision } from "@skein/protocol/Revision"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ConnectTalking, TalkingClient } from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import { program, type Server } from "../fixtures/tasks-clients.ts"
import * as Offer from "../fixtures/tasks-offer.ts"
import * as SdkV1 from "../sdk-v1-client.ts"
import * as SdkV2 from "../sdk-v2-client.ts"
import { serve, type Serving } from "../serving.ts"

let serving: Serving
let folder: string
beforeAll(async () => {
  serving = await serve(Offer.server(MemoryTasks.layer(Offer.quick)))
  folder = await mkdtemp(join(tmpdir(), "skein-tasks-"))
})
afterAll(async () => {
  await serving.close()
  await rm(folder, { recursive: true })
})

const http = (): Server => serving.http
const stdio = (): Server => program(join(folder, "tasks.db"))

const meetings: ReadonlyArray<readonly [string, ConnectTalking, Revision, () => Server]> = [
  ["sdk-v1", SdkV1.talk, "2024-11-05", http],
  ["sdk-v1", SdkV1.talk, "2025-06-18", http],
  ["sdk-v1", SdkV1.talk, "2025-11-25", http],
  ["sdk-v2", SdkV2.talk, "2025-11-25", http],
  ["sdk-v2", SdkV2.talk, "2026-07-28", http],
  ["sdk-v2", SdkV2.talk, "2026-07-28", stdio]
]

for (const [name, connect, revision, server] of meetings) {
  const modern = revision === "2026-07-28"
  describe(`${revision} · ${name} without tasks · ${server === http ? "HTTP" : "stdio"}`, () => {
    let client: TalkingClient
    const text = async (name: string) => textOf(await client.call(name, {}))
    beforeAll(async () => {
      client = await connect(server(), { revision })
    })
    afterAll(async () => {
      expect(client.complaints).toEqual([])
      await client.close()
    })

    it("a call has the task's result, its tool's failure, or its error", async () => {
      const sum = await client.call("sum", { a: 1, b: 2 })
      // Older results have no structured content.
      if (revision > "2025-06-17") expect(sum.structuredContent).toEqual({ sum: 3 })
      expect(JSON.parse(String(textOf(sum)))).toEqual({ sum: 3 })
      expect(await client.call("fail", {})).toMatchObject({ isError: true, content: [{ text: Offer.failure }] })
      const { code, data } = Offer.refusal
      await expect(client.call("refuse", {})).rejects.toMatchObject({ code, data })
    })

    it("a tool that can be called as a task alone is refused to who could know, and waits for who cannot", async () => {
      if (revision < "2025-11-25") return expect(await text("must")).toBe("As a task")
      const refused = modern
        ? { code: -32021, data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } } }
        : { code: -32601 }
      await expect(client.call("must", {})).rejects.toMatchObject(refused)
    })

    it("its progress is told as it comes", async () => {
      const told: Array<number> = []
      const cake = client.call("bake", {}, { onProgress: ({ progress }) => void told.push(progress) })
      for (const steps of [[1], [1, 2]]) {
        await eventually(() => expect(told).toEqual(steps))
        await eventually(async () => expect(await text("release")).toBe("1"))
      }
      expect(textOf(await cake)).toBe("A cake")
    })

    it("what it asks is asked through the call, all of it at once, where the revision can", async () => {
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

    it("a call that its client cancels ends the task, which undoes what it did", async () => {
      const before = Number(await text("undone"))
      const controller = new AbortController()
      const call = client.call("stuck", {}, { signal: controller.signal, onProgress: () => controller.abort() })
      await expect(call).rejects.toThrow(/.+/)
      await eventually(async () => expect(Number(await text("undone"))).toBe(before + 1))
    })
  })
}
