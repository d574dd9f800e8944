/**
 * Over HTTP: our client with the servers of others, in each way that they serve, in each revision that both speak, by `node:http` and
 * by `fetch`.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { AnyClient } from "../clients.ts"
import { eventually } from "../eventually.ts"
import { expectations } from "../expectations.ts"
import * as Board from "../fixtures/board.ts"
import { ways } from "../hosts/all.ts"
import type { Host } from "../hosts/host.ts"
import { manner, type Meeting } from "../matrix.ts"
import * as Skein from "../skein-client.ts"
import { talks } from "../talks.ts"

for (const { found, lacks, offer, revisions, server, talk, variant, way } of ways) {
  describe(`${server}, ${way}`, () => {
    const board = Board.make()
    let offering: Host
    let talking: Host
    beforeAll(async () => {
      offering = await offer()
      talking = await talk(board)
    })
    afterAll(async () => {
      await offering.close()
      await talking.close()
    })

    const meetings = [
      ...revisions.map((agreed) => ({ ask: agreed, agreed })),
      { ask: undefined, agreed: found }
    ].map(({ agreed, ask }): Meeting => ({ client: "skein", server, ask, serve: undefined, agreed }))

    for (const [index, meeting] of meetings.entries()) {
      // Every other revision by one of them, and what is found out by both.
      const wires: ReadonlyArray<Skein.Wire> = meeting.ask === undefined
        ? ["node", "fetch"]
        : index % 2 === 0
        ? ["node"]
        : ["fetch"]
      for (const wire of wires) {
        describe(`${meeting.agreed} · by ${wire}${manner(meeting)}`, () => {
          describe("what is offered", () => {
            let client: AnyClient | undefined
            beforeAll(async () => {
              client = await Skein.connectTo(offering.address, meeting.ask, wire)
            })
            afterAll(() => client?.close())
            expectations(meeting, () => client!, { progress: !lacks(meeting.agreed).includes("telling") })
          })

          describe("what is said", () => {
            let client: Skein.Host | undefined
            beforeAll(async () => {
              client = await Skein.talk(talking.address, { ...Skein.held(meeting.ask), wire })
            })
            afterAll(() => client?.close())
            talks({
              agreed: meeting.agreed,
              lacks: new Set(lacks(meeting.agreed)),
              board: async () => board,
              connected: () => client!
            })

            it("what was found out is what there is", () => {
              expect(client!.client.serverProfile).toMatchObject({
                revision: meeting.agreed,
                variant,
                info: { name: server }
              })
            })

            it("at the end nothing is left", async () => {
              const sessionId = talking.seen.at(-1)?.headers["mcp-session-id"]
              await client!.close()
              expect(client!.statuses).toEqual(["Connected", "Ended"])
              // The stream of HTTP+SSE has no other end than that of its socket.
              await eventually(() => expect(talking.sessions?.() ?? 0).toBe(0))
              if (sessionId !== undefined) {
                expect(talking.seen.at(-1)).toMatchObject({ verb: "DELETE", headers: { "mcp-session-id": sessionId } })
                expect([200, 204]).toContain(talking.seen.at(-1)!.status)
              }
            })
          })
        })
      }
    }
  })
}
