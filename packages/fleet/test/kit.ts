/** Helpers of the tests of fleets. */
import { type Change, EventBus } from "@skein/server/EventBus"
import { Fleet, type FleetError, type Message, type Service, type SessionRecord } from "@skein/server/Fleet"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"

export interface Node {
  readonly fleet: Service
  readonly bus: EventBus["Service"]
  readonly context: Context.Context<Fleet | EventBus>
  /** The messages and changes that have arrived, in order. */
  readonly arrived: Array<Message | Change>
  gaps: number
  readonly close: Effect.Effect<void>
}

/** Starts a node, which stops with the scope of the test. */
export const start = (
  layer: Layer.Layer<Fleet | EventBus, FleetError>
): Effect.Effect<Node, FleetError, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const context = yield* Layer.buildWithScope(layer, scope)
    const node: Node = {
      fleet: Context.get(context, Fleet),
      bus: Context.get(context, EventBus),
      context,
      arrived: [],
      gaps: 0,
      close: Scope.close(scope, Exit.void)
    }
    const receiver = { message: (message: Message) => void node.arrived.push(message), gap: () => void node.gaps++ }
    yield* Scope.provide(node.fleet.receive(receiver), scope)
    yield* Scope.provide(node.bus.subscribe((change) => void node.arrived.push(change)), scope)
    return node
  })

export const bounds = { maxSessions: 1_000, maxSessionsPerPrincipal: 1_000, idleTimeout: 600_000 }

/** The record of a session that a node opens. */
export const record = ({ fleet }: Node, principalId?: string): SessionRecord => ({
  id: fleet.newId(),
  principalId,
  revision: "2025-11-25",
  info: { name: "client", version: "1" },
  capabilities: { sampling: {} },
  isInitialized: false,
  logLevel: undefined,
  subscriptions: [],
  listensAt: fleet.node
})

/** Opens a session at a node. */
export const open = (node: Node, principalId?: string): Effect.Effect<SessionRecord, FleetError> => {
  const session = record(node, principalId)
  return Effect.as(node.fleet.create(session, bounds, principalId ?? "network"), session)
}

const maxMillis = 60_000

/** Waits until the condition, which an effect finds out, holds. */
export const untilEffect = <E, R>(what: string, condition: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.gen(function*() {
    for (const end = performance.now() + maxMillis; !(yield* condition);) {
      if (performance.now() > end) return yield* Effect.die(new Error(`${what}: not within ${maxMillis} ms`))
      yield* Effect.sleep(20)
    }
  })

/** Waits until a condition holds. */
export const until = (what: string, condition: () => boolean): Effect.Effect<void> =>
  untilEffect(what, Effect.sync(condition))
