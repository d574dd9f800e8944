/** A fleet on PostgreSQL for the tests of servers over HTTP. */
import * as PostgresEventStore from "@skein/fleet/PostgresEventStore"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import { Fleet } from "@skein/server/Fleet"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { TestFleet } from "../../../server/test/http/fleet/kit.ts"

// A node of a busy machine must not be taken for gone.
const leaseTimeout = "30 seconds"

/** A fleet in a database, which also has the events. */
export const postgresFleet = (url: string): TestFleet => ({
  node: () => {
    const layer = Layer.provideMerge(
      PostgresEventStore.layer(),
      PostgresFleet.layer({ url, maxConnections: 4, leaseTimeout })
    )
    return Effect.map(Effect.orDie(Layer.build(layer)), (context) => ({
      node: Context.get(context, Fleet).node,
      layer: Layer.succeedContext(context)
    }))
  }
})
