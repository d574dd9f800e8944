/**
 * Official servers behind `Proxy` of `@skein/gateway`, and official clients before it, in each pair of lifecycles. The
 * server with the proxy has the name and the instructions that the tests expect.
 */
import * as Client from "@skein/client/Client"
import * as SkeinHttp from "@skein/client/NodeHttp"
import * as Proxy from "@skein/gateway/Proxy"
import type * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import { afterAll, beforeAll, describe } from "vitest"
import type { InteractiveClient } from "../testClient.ts"
import { featureTests } from "../featureTests.ts"
import * as Features from "../fixtures/skeinFeatures.ts"
import { instructions } from "../fixtures/features.ts"
import * as V1Features from "../fixtures/sdkV1Features.ts"
import * as V2Features from "../fixtures/sdkV2Features.ts"
import type { Pairing } from "../matrix.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import * as V1 from "../servers/sdkV1.ts"
import * as V2 from "../servers/sdkV2.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

const clients = { "sdk-v1": SdkV1.connectInteractive, "sdk-v2": SdkV2.connectInteractive }

interface Behind {
  readonly name: string
  readonly revision: Revision.Revision
  readonly start: () => Promise<{ readonly url: string; readonly close: () => Promise<void> }>
}

const behind: ReadonlyArray<Behind> = [
  {
    name: "SDK v1 with sessions",
    revision: "2025-11-25",
    start: async () => {
      const { address, close } = await V1.streamable(V1Features.make, "sessions")
      return { url: address.url, close }
    }
  },
  {
    name: "SDK v2 without sessions",
    revision: "2026-07-28",
    start: async () => {
      const { address, close } = await V2.handler(() => V2Features.make())
      return { url: address.url, close }
    }
  },
  ...(["2025-06-18", "2026-07-28"] as const).map((revision): Behind => ({
    name: "Skein",
    revision,
    start: async () => {
      const { close, http } = await startServer(Features.server)
      return { url: http.url, close }
    }
  }))
]

const before: ReadonlyArray<readonly ["sdk-v1" | "sdk-v2", Revision.Revision]> = [
  ["sdk-v1", "2025-06-18"],
  ["sdk-v1", "2025-11-25"],
  ["sdk-v2", "2025-11-25"],
  ["sdk-v2", "2026-07-28"]
]

for (const { name, revision, start } of behind) {
  describe(`${name}, ${revision}, behind a proxy`, () => {
    let far: Awaited<ReturnType<Behind["start"]>>
    let near: RunningServer
    beforeAll(async () => {
      far = await start()
      const make = Client.make(SkeinHttp.transport({ url: far.url }), { revisions: [revision] })
      near = await startServer(McpServer.layer({ name: "skein", version: "1.0.0", instructions }, Proxy.layer(make)))
    })
    afterAll(async () => {
      await near.close()
      await far.close()
    })

    for (const [client, agreed] of before) {
      describe(`${agreed} · ${client} client`, () => {
        let connected: InteractiveClient | undefined
        beforeAll(async () => {
          connected = await clients[client](near.http, { revision: agreed })
        })
        afterAll(() => connected?.close())
        const pairing: Pairing = { client, server: "skein", ask: agreed, serve: undefined, agreed }
        // The errors are those of the server behind.
        featureTests(pairing, () => connected!, { resourceNotFound: name !== "SDK v1 with sessions" })
      })
    }
  })
}
