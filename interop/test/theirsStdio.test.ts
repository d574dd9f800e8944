/**
 * Over stdio: our client talks with the servers of others, in each revision that both speak. What they offer is in `stdio.test.ts`.
 */
import * as Revision from "@skein/protocol/Revision"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textOf } from "../conversations.ts"
import type { Noted } from "../fixtures/board.ts"
import { serverCommand } from "../matrix.ts"
import * as Skein from "../skein-client.ts"
import { type Lack, talks } from "../talks.ts"

const servers: ReadonlyArray<{
  readonly server: "sdk-v1" | "sdk-v2" | "effect-ai"
  readonly revisions: ReadonlyArray<Revision.Revision>
  readonly lacks: (agreed: Revision.Revision) => ReadonlyArray<Lack>
}> = [
  { server: "sdk-v1", revisions: Revision.sessionEra, lacks: () => [] },
  {
    server: "sdk-v2",
    revisions: Revision.all,
    lacks: () => ["completed"]
  },
  {
    server: "effect-ai",
    revisions: Revision.all,
    lacks: (
      agreed
    ) => ["completed", "gates", "removing", "roots", ...(agreed === "2025-06-18" ? ["defaults"] as const : [])]
  }
]

for (const { lacks, revisions, server } of servers) {
  for (const ask of [...revisions, undefined]) {
    const agreed = ask ?? revisions.at(-1)!
    describe(`${agreed} · ${server}${ask === undefined ? ", found out" : ""}`, () => {
      let client: Skein.Host | undefined
      beforeAll(async () => {
        client = await Skein.talk(serverCommand(`${server}-talk`), Skein.held(ask))
      })
      afterAll(() => client?.close())
      talks({
        agreed,
        lacks: new Set(lacks(agreed)),
        board: async () => JSON.parse(String(textOf(await client!.call("board", {})))) as Noted,
        connected: () => client!
      })

      it("what was found out is what there is, and at the end the process is gone", async () => {
        expect(client!.client.serverProfile).toMatchObject({ revision: agreed, info: { name: server } })
        await client!.close()
        expect(client!.statuses).toEqual(["Connected", "Ended"])
        expect(() => process.kill(client!.pid!, 0)).toThrow("ESRCH")
      })
    })
  }
}
