import { beforeAll, describe } from "vitest"
import { type Postgres, required, sharedPostgres, unavailable } from "./postgres.ts"

/**
 * Describes tests with the PostgreSQL server of this process. Without a server they are skipped with the reason; under CI
 * they fail.
 */
export const describePostgres = (name: string, tests: (postgres: () => Postgres) => void): void => {
  const skipped = unavailable !== undefined && !required
  describe.skipIf(skipped)(skipped ? `${name} (${unavailable})` : name, () => {
    let postgres: Postgres | undefined
    beforeAll(async () => {
      if (unavailable !== undefined) throw new Error(unavailable)
      postgres = await sharedPostgres()
    }, 60_000)
    tests(() => {
      if (postgres === undefined) throw new Error("the server has not been started")
      return postgres
    })
  })
}
