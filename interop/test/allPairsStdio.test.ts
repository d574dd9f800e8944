/**
 * All pairs over stdio: official clients with Skein's server, and Skein's client with official servers, in each common
 * revision. Requests and notifications from the server are tested with one revision per client;
 * `sdkClientsHttp.test.ts` has all of them.
 */
import { afterAll, beforeAll, describe } from "vitest"
import type { Connect, InteractiveClient, TestClient } from "../testClient.ts"
import { interactiveClientTests } from "../interactiveClientTests.ts"
import { featureTests } from "../featureTests.ts"
import { type ClientName, negotiationLabel, type Pairing, serverCommand, stdioPairings } from "../matrix.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import * as Skein from "../skeinClient.ts"

const clients: Readonly<Record<ClientName, Connect>> = {
  skein: Skein.connect,
  "sdk-v1": SdkV1.connect,
  "sdk-v2": SdkV2.connect
}

for (const pairing of stdioPairings) {
  const connect = clients[pairing.client]
  describe(`${pairing.agreed} · ${pairing.client} client, ${pairing.server} server${negotiationLabel(pairing)}`, () => {
    let client: TestClient | undefined
    beforeAll(async () => {
      client = await connect(serverCommand(pairing.server, "Features", pairing.serve), pairing.ask)
    })
    afterAll(() => client?.close())
    featureTests(pairing, () => client!)
  })
}

const interactivePairings: ReadonlyArray<Pairing> = [
  { client: "sdk-v1", server: "skein", ask: undefined, serve: undefined, agreed: "2025-11-25" },
  { client: "sdk-v2", server: "skein", ask: undefined, serve: undefined, agreed: "2025-11-25" },
  { client: "sdk-v2", server: "skein", ask: "auto", serve: undefined, agreed: "2026-07-28" }
]

for (const pairing of interactivePairings) {
  const { connectInteractive } = pairing.client === "sdk-v1" ? SdkV1 : SdkV2
  describe(`${pairing.agreed} · ${pairing.client} client, interactive skein server${negotiationLabel(pairing)}`, () => {
    let client: InteractiveClient | undefined
    beforeAll(async () => {
      client = await connectInteractive(serverCommand("skein", "Interactive"), { revision: pairing.ask })
    })
    afterAll(() => client?.close())
    interactiveClientTests(pairing, () => client!)
  })
}
