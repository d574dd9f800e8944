/**
 * Skein's client with official servers over HTTP: in each configuration of the servers, in each common revision, with
 * `node:http` and with `fetch`.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { TestClient } from "../testClient.ts"
import { eventually } from "../eventually.ts"
import { featureTests } from "../featureTests.ts"
import * as State from "../fixtures/interactiveState.ts"
import { configurations } from "../servers/configurations.ts"
import type { HttpServer } from "../servers/httpServer.ts"
import { negotiationLabel, type Pairing } from "../matrix.ts"
import * as Skein from "../skeinClient.ts"
import { interactiveServerTests } from "../interactiveServerTests.ts"

for (const configuration of configurations) {
  const { missing, negotiated, revisions, server, variant } = configuration
  describe(`${server}, ${configuration.name}`, () => {
    const state = State.make()
    let features: HttpServer
    let interactive: HttpServer
    beforeAll(async () => {
      features = await configuration.features()
      interactive = await configuration.interactive(state)
    })
    afterAll(async () => {
      await features.close()
      await interactive.close()
    })

    const pairings = [
      ...revisions.map((agreed) => ({ ask: agreed, agreed })),
      { ask: undefined, agreed: negotiated }
    ].map(({ agreed, ask }): Pairing => ({ client: "skein", server, ask, serve: undefined, agreed }))

    for (const [index, pairing] of pairings.entries()) {
      // Given revisions alternate between both HTTP implementations. The negotiated revision is tested with both.
      const httpClients: ReadonlyArray<Skein.HttpClientName> = pairing.ask === undefined
        ? ["node", "fetch"]
        : index % 2 === 0
        ? ["node"]
        : ["fetch"]
      for (const httpClient of httpClients) {
        describe(`${pairing.agreed} · ${httpClient}${negotiationLabel(pairing)}`, () => {
          describe("features", () => {
            let client: TestClient | undefined
            beforeAll(async () => {
              client = await Skein.connectPlain(features.address, pairing.ask, httpClient)
            })
            afterAll(() => client?.close())
            featureTests(pairing, () => client!, { progress: !missing(pairing.agreed).includes("callNotifications") })
          })

          describe("interaction", () => {
            let client: Skein.InteractiveSkeinClient | undefined
            beforeAll(async () => {
              client = await Skein.connectInteractive(interactive.address, {
                ...Skein.onlyRevision(pairing.ask),
                httpClient
              })
            })
            afterAll(() => client?.close())
            interactiveServerTests({
              agreed: pairing.agreed,
              missing: new Set(missing(pairing.agreed)),
              state: async () => state,
              connected: () => client!
            })

            it("detects the revision, the transport and the server", () => {
              expect(client!.client.serverProfile).toMatchObject({
                revision: pairing.agreed,
                httpMode: variant,
                info: { name: server }
              })
            })

            it("ends the session when it closes", async () => {
              const sessionId = interactive.requests.at(-1)?.headers["mcp-session-id"]
              await client!.close()
              expect(client!.statuses).toEqual(["Connected", "Ended"])
              // An HTTP+SSE session ends when its socket closes.
              await eventually(() => expect(interactive.sessions?.() ?? 0).toBe(0))
              if (sessionId !== undefined) {
                expect(interactive.requests.at(-1)).toMatchObject({
                  verb: "DELETE",
                  headers: { "mcp-session-id": sessionId }
                })
                expect([200, 204]).toContain(interactive.requests.at(-1)!.status)
              }
            })
          })
        })
      }
    }
  })
}
