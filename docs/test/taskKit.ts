/** Servers with tasks under `TestClock`. Time advances in steps, and after each step all fibers that woke up run. */
import type { Catalog } from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import type { TaskAdmin } from "@skein/tasks/TaskAdmin"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskSchedules } from "@skein/tasks/TaskSchedules"
import type { Principal, Transport } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { bounded } from "../../packages/client/test/support/fixedBounds.ts"

/** A long poll interval, because these tests advance the clock by days. */
export const inMemory = MemoryTasks.layer({ pollInterval: "10 minutes" })

type Needs<E> = Layer.Layer<McpServer.McpServer | Catalog, E, TaskEngine | TaskSchedules | SqlClient.SqlClient>

/** Simulates a process: a server on an engine, until it is closed. */
export const run = <E, E2>(
  server: Needs<E>,
  engine: Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules | SqlClient.SqlClient, E2>
) =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const context = yield* Effect.orDie(Layer.buildWithScope(Layer.provideMerge(server, engine), scope))
    const { serve } = Context.get(context, McpServer.McpServer)
    return {
      context,
      close: Scope.close(scope, Exit.void),
      transport: (principal?: Principal) => InMemoryTransport.transport(serve, { principal })
    }
  })

/** A user who answers each question by its message. */
export const user = (answers: Readonly<Record<string, Elicitation.Content>>) =>
  Effect.provide(Elicitation.layer({
    form: ({ message }) =>
      Effect.succeed(answers[message] === undefined ? Elicitation.decline : Elicitation.accept(answers[message]))
  }))

export type Revision = "2025-06-18" | "2025-11-25" | "2026-07-28"

/** Connects a client. It polls at the step of the clock, so that a task of days is polled a few times. */
export const clientOf = (transport: Transport, revision: Revision = "2026-07-28") =>
  bounded({ minPollInterval: 10 * 60_000 }, Client.make(transport, { revisions: [revision] }))

/** Runs all fibers that are ready, without advancing the clock. */
export const settled = Effect.forEach(
  Array.from({ length: 20 }),
  () =>
    Effect.andThen(Effect.promise(() => new Promise<void>((resolve) => void setImmediate(resolve))), Effect.yieldNow),
  { discard: true }
)

/** Advances the clock. */
export const pass = (hours: number, step = 1) =>
  Effect.forEach(
    Array.from({ length: Math.ceil(hours / step) }),
    () => Effect.andThen(TestClock.adjust(step * 3_600_000), settled),
    { discard: true }
  )

/** Advances the clock until a call has ended. */
export const until = <A, E>(call: Fiber.Fiber<A, E>) =>
  Effect.andThen(
    Effect.repeat(pass(1 / 6, 1 / 6), { until: () => call.pollUnsafe() !== undefined }),
    Effect.suspend(() => call.pollUnsafe()!)
  )
