/** Sessions over HTTP at three nodes on PostgreSQL. */
import * as Effect from "effect/Effect"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { principalTests } from "../../../server/test/http/fleet/principalTests.ts"
import { httpTests } from "../httpTests.ts"
import { postgresFleet } from "./httpFleet.ts"

describePostgres("sessions over HTTP on PostgreSQL", (postgres) => {
  const makeFleet = Effect.map(Effect.promise(() => postgres().createDatabase()), postgresFleet)
  httpTests(makeFleet)
  principalTests(makeFleet)
})
