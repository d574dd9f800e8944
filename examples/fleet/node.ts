/**
 * One node of the fleet: the tea house, with the sessions, streams and tasks of all nodes in the database `FLEET_DATABASE`. It
 * reports its port to the process that started it, and ends with it.
 */
import * as PostgresEventStore from "@skein/fleet/PostgresEventStore"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { logKitchenTo } from "../tour/kitchenLog.ts"
import { TeaHouse } from "../tour/server.ts"

const url = process.env["FLEET_DATABASE"]!

process.once("disconnect", () => process.exit())

const Fleet = Layer.provideMerge(PostgresEventStore.layer(), PostgresFleet.layer({ url }))
const Shared = Layer.mergeAll(Fleet, PostgresTasks.layer({ url }), logKitchenTo(process.stderr))

NodeHttp.runMain(TeaHouse.pipe(Layer.provideMerge(Shared)), {
  port: 0,
  health: true,
  // The balancer asks /readyz each 200 ms.
  drainDelay: "1 second",
  logLevel: "Warn",
  onListening: ({ port }) => Effect.sync(() => process.send?.({ port }))
})
