/** Sessions over HTTP at three nodes on Redis. */
import * as Effect from "effect/Effect"
import { principalTests } from "../../server/test/http/fleet/principalTests.ts"
import { httpTests } from "./httpTests.ts"
import { redisFleet } from "./redisHttpFleet.ts"
import { describeRedis } from "./startRedis.ts"

describeRedis("sessions over HTTP on Redis", (redis) => {
  const makeFleet = Effect.sync(() => redisFleet(redis().url))
  httpTests(makeFleet)
  principalTests(makeFleet)
})
