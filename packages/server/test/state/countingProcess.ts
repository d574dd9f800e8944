/**
 * A process of a server whose tool `count` increments a counter of its user in a database. It calls the tool as often as
 * its parent says, for one user, and reports the numbers that the tool returned.
 */
import * as PgClient from "@skein/sql/PgClient"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as SqlStateStore from "@skein/server/SqlStateStore"
import * as State from "@skein/server/State"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as kit from "../kit.ts"
import * as support from "../middleware/support.ts"

const [place = ""] = process.argv.slice(2)
const Database = place.startsWith("postgres:")
  ? PgClient.layer({ url: place, maxConnections: 5 })
  : SqliteClient.layer({ filename: place, lockTimeout: "10 seconds" })

const counter = State.make("counter", { schema: Schema.Int, initial: 0 })
const count = Tool.layer(Tool.make("count"), () => Effect.map(counter.update((n) => n + 1), String))

const program = Effect.gen(function*() {
  const server = yield* support.build(
    kit.server(count).pipe(Layer.provide(SqlStateStore.layer()), Layer.provide(Database), Layer.orDie)
  )
  const client = yield* support.connect(server, "2026-07-28", support.as("ada"))
  const call = Effect.map(client.call("count"), ({ content }) => String(content[0].text))
  process.on("message", (calls: number) => {
    void Effect.runPromise(Effect.replicateEffect(call, calls, { concurrency: 5 })).then((seen) => process.send!(seen))
  })
  process.send!("ready")
  return yield* Effect.never
})

process.on("disconnect", () => process.exit())
await Effect.runPromise(Effect.scoped(program))
