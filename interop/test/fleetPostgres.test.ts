/**
 * Sessions over HTTP of official clients with three nodes of Skein's server on PostgreSQL, each request at the next one.
 */
import { afterAll, beforeAll, describe } from "vitest"
import { describePostgres } from "../../packages/sql/test/describePostgres.ts"
import { postgresFleet } from "../../packages/fleet/test/postgres/httpFleet.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import { startFleet } from "../fleet.ts"
import { manyClientsTest } from "../manyClientsTest.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { sessionTests } from "../sessionTests.ts"
import type { SessionServer } from "../skeinServer.ts"

describePostgres("three nodes on PostgreSQL", (postgres) => {
  const counts = { interrupted: 0 }
  let server: SessionServer
  beforeAll(async () => {
    const fleet = postgresFleet(await postgres().createDatabase())
    server = await startFleet(Interactive.server({ interrupted: () => void counts.interrupted++ }), fleet)
  })
  afterAll(() => server?.close())

  for (const [name, connect] of [["sdk-v1", SdkV1.connectInteractive], ["sdk-v2", SdkV2.connectInteractive]] as const) {
    describe(name, () => sessionTests(name, connect, { server: () => server, counts }))
  }

  manyClientsTest(() => server.http)
})
