import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const read = (shop: string): Effect.Effect<number, NoFigures> =>
  shop === "harbour"
    ? Effect.fail(new NoFigures({ message: "The harbour shop is closed" }))
    : Effect.succeed(shop.length * 10)
class NoFigures extends Schema.TaggedError<NoFigures>()("NoFigures", { message: Schema.String }) {}

// #region children
const figures = Task.make("figures", { input: { shop: Schema.String }, output: { cakes: Schema.Int } })

const reading = Task.layer(figures, ({ shop }) =>
  Effect.map(
    Step.run("read", { success: Schema.Int, error: NoFigures }, () => read(shop)),
    (cakes) => ({ cakes })
  ))

const report = Task.make("report", { input: { shops: Schema.Array(Schema.String) } })

const reporting = Task.layer(report, ({ shops }) =>
  Effect.gen(function*() {
    const results = yield* Task.forEach(figures, shops.map((shop) => ({ shop })), {
      concurrency: 20,
      onFailure: "collect"
    })
    const sold = results.filter(Result.isSuccess).map(({ success }) => success.cakes)
    return `${sold.length} of ${shops.length} shops sold ${sold.reduce((sum, cakes) => sum + cakes, 0)} cakes`
  }))
// #endregion

// #region submit
export const night = Effect.gen(function*() {
  const handle = yield* Task.submit(report, { shops: ["market", "harbour", "castle"] }, { key: "2026-11-30" })
  return yield* handle.await
})
// #endregion

export const Server = McpServer.layer({ name: "bakery", version: "1.0.0" }, reading, reporting, Tasks.layer())
