import * as PgClient from "@effect/sql-pg/PgClient"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as McpServer from "@skein/server/McpServer"
import * as Telemetry from "@skein/server/Telemetry"
import * as SqlTasks from "@skein/tasks/SqlTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"

/** A repository of the application. It has nothing of Skein. */
export class Stock extends Context.Service<Stock, {
  readonly reserve: (tea: string, grams: number) => Effect.Effect<void, SoldOut>
  readonly left: (tea: string) => Effect.Effect<number>
}>()("tea/Stock") {
  static readonly layer = Layer.effect(
    Stock,
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const left = (tea: string) =>
        Effect.orDie(
          Effect.map(sql<{ grams: number }>`SELECT grams FROM stock WHERE tea = ${tea}`, ([row]) =>
            Number(row?.grams ?? 0))
        )
      const reserve = Effect.fn("Stock.reserve")(function*(tea: string, grams: number) {
        if ((yield* left(tea)) < grams) return yield* new SoldOut({ tea })
        yield* Effect.orDie(sql`UPDATE stock SET grams = grams - ${grams} WHERE tea = ${tea}`)
      })
      return { left, reserve }
    })
  )
}

export class SoldOut extends Schema.TaggedError<SoldOut>()("SoldOut", { tea: Schema.String }) {
  override get message() {
    return `There is not enough ${this.tea}`
  }
}

const order = Task.make("order", {
  description: "Orders tea, and blends it",
  input: { tea: Schema.String, grams: Schema.Int },
  output: { left: Schema.Int }
})

export const Order = Task.layer(order, ({ grams, tea }) =>
  Effect.gen(function*() {
    const stock = yield* Stock
    const blending = yield* Effect.orDie(Config.Duration("BLENDING").pipe(Config.withDefault(Duration.seconds(1))))
    yield* Effect.logInfo(`Blends ${grams} g of ${tea}`)
    // The table of the application and the record of the step change in one transaction.
    yield* Step.run("reserve", { transactional: true, error: SoldOut }, () => stock.reserve(tea, grams))
    yield* Step.sleep("blending", blending)
    return { left: yield* Step.run("left", { success: Schema.Int }, () => stock.left(tea)) }
  }))

const Mcp = HttpRoutes.layer().pipe(
  Layer.provide(McpServer.layer({ name: "tea", version: "1.0.0" }, Telemetry.layer(), Order, Tasks.layer())),
  Layer.provide(SqlTasks.layer())
)
const LeftInStock = HttpRouter.add(
  "GET",
  "/stock/:tea",
  Effect.gen(function*() {
    const { tea = "" } = yield* HttpRouter.params
    const stock = yield* Stock
    return yield* HttpServerResponse.json({ left: yield* stock.left(tea) })
  })
)

/** The routes of the application. They, the handlers of tools and the engine of tasks have one client. */
export const App = Layer.merge(LeftInStock, Mcp)

export const Database = PgClient.layerConfig({
  url: Config.Redacted("DATABASE_URL"),
  maxConnections: Config.succeed(20),
  // A worker that is stopped in a transaction must not hold its locks for longer than its lease.
  startupParameters: Config.succeed({ idle_in_transaction_session_timeout: "3000", statement_timeout: "30000" }),
  connectTimeout: Config.succeed(Duration.seconds(10))
})
