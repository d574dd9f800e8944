/** Nodes without sockets on the test clock, for tests that need exact times. */
import * as EventStore from "@skein/server/EventStore"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import { internals } from "../../../src/internal/catalog/catalogState.ts"
import type { FleetSessions } from "../../../src/internal/http/sessions/fleetSessions.ts"
import type { Json } from "../kit.ts"
import type { FakeAnswer } from "../session/fake.ts"
import { Control } from "../session/kit.ts"
import { server } from "./kit.ts"
import type { MemoryFleet } from "./memoryFleet.ts"

export interface FakeNode {
  readonly number: number
  readonly endpoint: Http.Endpoint
  readonly control: Control
  readonly scope: Scope.Closeable
  readonly sharing: FleetSessions
}

/** Starts a node with the events of the fleet. */
export const startNode = (
  fleet: MemoryFleet,
  options: Http.Options = {}
): Effect.Effect<FakeNode, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { layer, node } = yield* fleet.node()
    const control = new Control()
    const scope = yield* Scope.make()
    const services = Layer.mergeAll(
      layer,
      Layer.succeed(EventStore.EventStore, fleet.eventsOf(node)),
      Logger.layer([])
    )
    const context = yield* Effect.orDie(
      Layer.buildWithScope(server(control).pipe(Layer.provideMerge(services)), scope)
    )
    const endpoint = yield* Http.make({ shutdownTimeout: 100, ...options }).pipe(
      Effect.provideContext(context),
      Scope.provide(scope)
    )
    const { subscriptions } = Context.get(context, McpServer.McpServer)[internals]
    return { number: node, endpoint, control, scope, sharing: subscriptions.sharing as FleetSessions }
  })

/** The messages of an answer, and the ids of their events. */
export const read = (answer: FakeAnswer): Array<{ readonly id?: string | undefined; readonly json?: Json }> => {
  if (answer.text === "") return []
  if (String(answer.headers["content-type"]).includes("json")) return [{ json: JSON.parse(answer.text) }]
  return answer.text.split("\n\n").flatMap((block) => {
    const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1]
    const [id, data] = [field("id"), field("data")]
    return id === undefined && data === undefined ? [] : [{ id, ...(data ? { json: JSON.parse(data) } : {}) }]
  })
}
