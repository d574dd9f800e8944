/**
 * Skein's client with interactive official servers over stdio, in each common revision. Their features are in
 * `allPairsStdio.test.ts`.
 */
import * as Revision from "@skein/protocol/Revision"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../interactiveClientTests.ts"
import type { StateCounts } from "../fixtures/interactiveState.ts"
import { serverCommand } from "../matrix.ts"
import * as Skein from "../skeinClient.ts"
import { interactiveServerTests, type Missing } from "../interactiveServerTests.ts"

const servers: ReadonlyArray<{
  readonly server: "sdk-v1" | "sdk-v2" | "effect-ai"
  readonly revisions: ReadonlyArray<Revision.Revision>
  readonly missing: (agreed: Revision.Revision) => ReadonlyArray<Missing>
}> = [
  { server: "sdk-v1", revisions: Revision.sessionBased, missing: () => [] },
  {
    server: "sdk-v2",
    revisions: Revision.all,
    missing: () => ["urlCompletion"]
  },
  {
    server: "effect-ai",
    revisions: Revision.all,
    missing: (
      agreed
    ) => [
      "urlCompletion",
      "urlRequired",
      "toolRemoval",
      "rootsChanges",
      ...(agreed === "2025-06-18" ? ["formDefaults"] as const : [])
    ]
  }
]

for (const { missing, revisions, server } of servers) {
  for (const ask of [...revisions, undefined]) {
    const agreed = ask ?? revisions.at(-1)!
    describe(`${agreed} · ${server}${ask === undefined ? ", negotiated" : ""}`, () => {
      let client: Skein.InteractiveSkeinClient | undefined
      beforeAll(async () => {
        client = await Skein.connectInteractive(serverCommand(server, "Interactive"), Skein.onlyRevision(ask))
      })
      afterAll(() => client?.close())
      interactiveServerTests({
        agreed,
        missing: new Set(missing(agreed)),
        state: async () => JSON.parse(String(textOf(await client!.call("state", {})))) as StateCounts,
        connected: () => client!
      })

      it("detects the revision and the server, and ends the process when it closes", async () => {
        expect(client!.client.serverProfile).toMatchObject({ revision: agreed, info: { name: server } })
        await client!.close()
        expect(client!.statuses).toEqual(["Connected", "Ended"])
        expect(() => process.kill(client!.pid!, 0)).toThrow("ESRCH")
      })
    })
  }
}
