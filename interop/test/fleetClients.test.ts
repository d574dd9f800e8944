/**
 * Clients with three nodes of Skein's server over Streamable HTTP and HTTP+SSE, each request at the next one: the official clients and
 * Skein's, in each revision.
 */
import * as Revision from "@skein/protocol/Revision"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { InteractiveClient, TestClient } from "../testClient.ts"
import { interactiveClientTests, textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import { featureTests } from "../featureTests.ts"
import { startFleet } from "../fleet.ts"
import * as Features from "../fixtures/skeinFeatures.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import { httpPairings, negotiationLabel, type Pairing, severalNodes } from "../matrix.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import * as Skein from "../skeinClient.ts"

const officialClients = { "sdk-v1": SdkV1.connectInteractive, "sdk-v2": SdkV2.connectInteractive }

const counts = { interrupted: 0 }
type FleetServer = Awaited<ReturnType<typeof startFleet>>
let features: FleetServer
let interactive: FleetServer
beforeAll(async () => {
  features = await startFleet(Features.server)
  interactive = await startFleet(Interactive.server({ interrupted: () => void counts.interrupted++ }))
})
afterAll(async () => {
  await features.close()
  await interactive.close()
})

const connected = <A extends { readonly close: () => Promise<void> }>(connect: () => Promise<A>): () => A => {
  let client: A | undefined
  beforeAll(async () => {
    client = await connect()
  })
  afterAll(() => client?.close())
  return () => client!
}

for (const pairing of httpPairings) {
  const { transport } = pairing
  const connect = (server: FleetServer): Promise<InteractiveClient> =>
    officialClients[pairing.client](server[transport], { revision: pairing.ask })
  // A session over HTTP+SSE is at one node.
  const topology = transport === "sse" ? undefined : severalNodes
  describe(`${pairing.agreed} · ${pairing.client} client over ${transport}${negotiationLabel(pairing)}`, () => {
    describe("features", () => featureTests(pairing, connected(() => connect(features))))
    describe("interaction", () => interactiveClientTests(pairing, connected(() => connect(interactive)), topology))
  })
}

for (const agreed of Revision.all) {
  const pairing: Pairing = { client: "skein", server: "skein", ask: agreed, serve: undefined, agreed }
  const isStateless = agreed === "2026-07-28"
  describe(`${agreed} · skein client`, () => {
    describe("features", () =>
      featureTests(pairing, connected((): Promise<TestClient> => Skein.connectPlain(features.http, agreed))))

    describe("interaction", () => {
      const client = connected(() => Skein.connectInteractive(interactive.http, Skein.onlyRevision(agreed)))
      const call = async (name: string, args = {}) => textOf(await client().call(name, args))

      it("answers the requests of the server", async () => {
        for (let n = 0; n < 3; n++) {
          expect(await call("model")).toBe("Ada said")
          expect(await call("places")).toBe("file:///home/Ada")
          if (agreed >= "2025-06-18") expect(await call("who", { question: "Who?" })).toBe("Hello, Ada!")
        }
      })

      it("receives updates of a watched resource, and list changes", async () => {
        const watching = client().watch({ uris: ["test://watched"], tools: true })
        const events = () => watching.changes.map(({ _tag }) => _tag)
        await eventually(() => expect(events()).toEqual(["Subscribed"]))
        await call("touch", { uri: "test://other" })
        await call("touch", { uri: "test://watched" })
        await eventually(() => expect(events()).toEqual(["Subscribed", "ResourceUpdated"]))
        const growing = call("grow")
        await eventually(() => expect(events()).toEqual(["Subscribed", "ResourceUpdated", "ToolListChanged"]))
        await call("release")
        expect(await growing).toBe("grown")
        await watching.end()
      })

      it("receives progress during a call, across another call, and cancels a call", async () => {
        const progress: Array<number> = []
        const steps = client().call("steps", {}, { onProgress: (note) => void progress.push(note.progress) })
        await eventually(() => expect(progress).toEqual([1, 2, 3]))
        await call("release")
        expect(textOf(await steps)).toBe("four steps")
        expect(progress).toEqual([1, 2, 3, 4])
        const { interrupted } = counts
        const controller = new AbortController()
        const { signal } = controller
        const stuck = client().call("stuck", {}, { signal, onProgress: () => controller.abort() })
        await expect(stuck).rejects.toBeDefined()
        await eventually(() => expect(counts.interrupted).toBe(interrupted + 1))
      })

      if (!isStateless) {
        it("sets the level of log messages at every node", async () => {
          const { logs } = client().received
          await client().run(client().client.setLoggingLevel("warning"))
          for (let n = 1; n <= 3; n++) {
            expect(await call("log")).toBe("logged")
            await eventually(() => expect(logs).toHaveLength(2 * n))
          }
        })
      }
    })
  })
}
