/**
 * Sessions over HTTP of official clients with three nodes of Skein's server on Redis, each request at the next one.
 */
import { afterAll, beforeAll, describe } from "vitest"
import { redisFleet } from "../../packages/fleet/test/redisHttpFleet.ts"
import { describeRedis } from "../../packages/fleet/test/startRedis.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import { startFleet } from "../fleet.ts"
import { manyClientsTest } from "../manyClientsTest.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { sessionTests } from "../sessionTests.ts"
import type { SessionServer } from "../skeinServer.ts"

describeRedis("three nodes on Redis", (redis) => {
  const counts = { interrupted: 0 }
  let server: SessionServer
  beforeAll(async () => {
    server = await startFleet(
      Interactive.server({ interrupted: () => void counts.interrupted++ }),
      redisFleet(redis().url)
    )
  })
  afterAll(() => server?.close())

  for (const [name, connect] of [["sdk-v1", SdkV1.connectInteractive], ["sdk-v2", SdkV2.connectInteractive]] as const) {
    describe(name, () => sessionTests(name, connect, { server: () => server, counts }))
  }

  manyClientsTest(() => server.http)
})
