/**
 * Interactive official servers as child processes behind `Proxy` of `@skein/gateway`, in each pair of lifecycles. Skein's
 * client tests them, as `officialServersStdio.test.ts` does without a proxy.
 */
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as Proxy from "@skein/gateway/Proxy"
import type * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import type { StateCounts } from "../fixtures/interactiveState.ts"
import { textOf } from "../interactiveClientTests.ts"
import { interactiveServerTests, type Missing } from "../interactiveServerTests.ts"
import { serverCommand } from "../matrix.ts"
import * as Skein from "../skeinClient.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

const children: ReadonlyArray<readonly ["sdk-v1" | "sdk-v2", Revision.Revision]> = [
  ["sdk-v1", "2025-11-25"],
  ["sdk-v2", "2025-11-25"],
  ["sdk-v2", "2026-07-28"]
]

/** The features that are not passed on (`docs/remote-servers.md`), or that the server lacks without a proxy, too. */
const missing = (
  server: string,
  front: Revision.Revision,
  behind: Revision.Revision
): ReadonlyArray<Missing> => [
  "rootsChanges",
  ...(server === "sdk-v2" || front === "2026-07-28" ? ["urlCompletion"] as const : []),
  ...(behind === "2026-07-28" ? ["urlRequired"] as const : [])
]

for (const [server, behind] of children) {
  for (const front of ["2025-11-25", "2026-07-28"] as const) {
    describe(`${front} before a child of ${server}, ${behind}`, () => {
      const pids: Array<number> = []
      let near: RunningServer
      let client: Skein.InteractiveSkeinClient | undefined
      beforeAll(async () => {
        const stdio = Stdio.transport(serverCommand(server, "Interactive"))
        const connect = Effect.tap(stdio.connect, ({ pid }) => Effect.sync(() => pids.push(pid)))
        const make = Client.make({ ...stdio, connect }, { label: server, revisions: [behind] })
        // The tests look at the state of one child. By default a stateless call beside an unanswered one has another child.
        const proxy = Proxy.layer(make, { connections: "shared" })
        near = await startServer(McpServer.layer({ name: "near", version: "1.0.0" }, proxy))
        client = await Skein.connectInteractive(near.http, { revisions: [front] })
      })
      afterAll(async () => {
        await client?.close()
        await near.close()
        for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH")
      })

      interactiveServerTests({
        agreed: front,
        missing: new Set(missing(server, front, behind)),
        state: async () => JSON.parse(String(textOf(await client!.call("state", {})))) as StateCounts,
        connected: () => client!
      })

      it("fails a call whose child is killed, and goes on with the next child", async () => {
        const call = client!.call("stuck", {}, {
          onProgress: () => process.kill(pids[0]!, "SIGKILL")
        })
        await expect(call).rejects.toMatchObject({
          reason: { error: { code: -32603, data: { reason: "RemoteUnavailable" } } }
        })
        expect(textOf(await client!.call("who", { question: "Who?" }))).toBe("Hello, Ada!")
        expect(pids).toHaveLength(2)
        await eventually(async () => expect((await client!.tools()).map(({ name }) => name)).toContain("grow"))
      })
    })
  }
}
