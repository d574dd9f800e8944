/** Official clients of a fleet on PostgreSQL whose nodes are killed and replaced meanwhile. */
import { expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import { textOf } from "../interactiveClientTests.ts"
import { callWhileKilled, describeNodes } from "../nodeProcesses.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"

const clients = [
  ["sdk-v1", SdkV1.connectInteractive, "2025-06-18"],
  ["sdk-v1", SdkV1.connectInteractive, "2025-11-25"],
  ["sdk-v2", SdkV2.connectInteractive, "2025-11-25"],
  ["sdk-v2", SdkV2.connectInteractive, "2026-07-28"]
] as const

describeNodes("nodes that are killed", (nodes) => {
  for (const [name, connect, revision] of clients) {
    it(`${revision} · ${name}: only calls at them fail, and the session and its notifications go on`, async () => {
      const client = await connect(nodes().http, { revision })
      const { sessionId } = client
      // Also while the stream of the client was at the killed node.
      const killed = async () => {
        const unwatch = await client.watch({ tools: true })
        client.received.lists.length = 0
        expect(textOf(await client.call("change", {}))).toBe("changed")
        await eventually(() => expect(client.received.lists).toContain("tools"))
        await unwatch()
      }
      await callWhileKilled(nodes(), client, { killed })
      expect(client.sessionId).toBe(sessionId)
      // The stream of a call of a killed node is unknown.
      const refused = client.sent.filter(({ headers, status, verb }) =>
        status >= 400 && !(status === 400 && verb === "GET" && headers.has("last-event-id"))
      )
      expect(refused).toEqual([])
      await client.terminate()
      await client.close()
    })
  }

  for (const [name, connect] of [["sdk-v1", SdkV1.connectInteractive], ["sdk-v2", SdkV2.connectInteractive]] as const) {
    it(`2025-11-25 · ${name}: receives the answer of a call whose stream it resumes at other nodes`, async () => {
      const client = await connect(nodes().http, { revision: "2025-11-25" })
      for (let n = 0; n < 3; n++) expect(textOf(await client.call("late", {}, { onProgress: () => {} }))).toBe("late")
      await client.terminate()
      await client.close()
    })
  }
})
