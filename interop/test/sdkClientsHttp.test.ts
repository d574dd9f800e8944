/**
 * Official clients with Skein's server over HTTP, in each common revision and over each transport of the clients.
 */
import { afterAll, beforeAll, describe } from "vitest"
import type { InteractiveClient } from "../testClient.ts"
import { interactiveClientTests } from "../interactiveClientTests.ts"
import { featureTests } from "../featureTests.ts"
import * as Features from "../fixtures/skeinFeatures.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import { type HttpPairing, httpPairings, negotiationLabel } from "../matrix.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

const clients = { "sdk-v1": SdkV1.connectInteractive, "sdk-v2": SdkV2.connectInteractive }

let features: RunningServer
let interactive: RunningServer
beforeAll(async () => {
  features = await startServer(Features.server)
  interactive = await startServer(Interactive.server())
})
afterAll(async () => {
  await features.close()
  await interactive.close()
})

const connectAndTest = (
  pairing: HttpPairing,
  server: () => RunningServer,
  tests: (connected: () => InteractiveClient) => void
): void => {
  let client: InteractiveClient | undefined
  beforeAll(async () => {
    client = await clients[pairing.client](server()[pairing.transport], { revision: pairing.ask })
  })
  afterAll(() => client?.close())
  tests(() => client!)
}

for (const pairing of httpPairings) {
  describe(`${pairing.agreed} · ${pairing.client} client over ${pairing.transport}${negotiationLabel(pairing)}`, () => {
    describe("features", () => connectAndTest(pairing, () => features, (connected) => featureTests(pairing, connected)))
    describe("interaction", () =>
      connectAndTest(pairing, () => interactive, (connected) => interactiveClientTests(pairing, connected)))
  })
}
