/** A fleet on Redis for the tests of servers over HTTP. */
import * as RedisEventStore from "@skein/fleet/RedisEventStore"
import * as RedisFleet from "@skein/fleet/RedisFleet"
import * as RandomId from "@skein/runtime/RandomId"
import { Fleet } from "@skein/server/Fleet"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { TestFleet } from "../../server/test/http/fleet/kit.ts"

// A node of a busy machine must not be taken for gone.
const leaseTimeout = "30 seconds"

/** A new fleet in Redis, which also has the events. */
export const redisFleet = (url: string): TestFleet => {
  const namespace = RandomId.make(8)
  return {
    node: () => {
      const layer = Layer.provideMerge(
        RedisEventStore.layer({ namespace }),
        RedisFleet.layer({ url, namespace, leaseTimeout })
      )
      return Effect.map(Effect.orDie(Layer.build(layer)), (context) => ({
        node: Context.get(context, Fleet).node,
        layer: Layer.succeedContext(context)
      }))
    }
  }
}
