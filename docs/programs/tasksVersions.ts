import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as TaskAdmin from "@skein/tasks/TaskAdmin"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const bought: Array<string> = []
const buy = (what: string, key: string) =>
  Effect.sync(() => {
    bought.push(what)
    return { order: `${what} ${key.length}`, price: 12 }
  })

const bake = Task.make("bake", { ttl: "7 days" })

/** The code until May. */
const before = Task.layer(bake, () =>
  Effect.gen(function*() {
    const { order } = yield* Step.run(
      "flour",
      { success: Schema.Struct({ order: Schema.String }) },
      (key) => buy("flour", key)
    )
    yield* Step.sleep("rest", "2 hours")
    return `Baked: ${order}`
  }))

// #region after
const after = Task.layer(bake, () =>
  Effect.gen(function*() {
    // Since May. Tasks that bought their flour before go on without butter.
    const hasButter = yield* Task.patched("butter")
    if (hasButter) yield* Step.run("butter", {}, (key) => buy("butter", key))
    const Flour = Schema.Struct({
      order: Schema.String,
      // Tasks that bought their flour before have no price.
      price: Schema.optionalKey(Schema.Finite)
    })
    const { order, price } = yield* Step.run("flour", { success: Flour }, (key) => buy("flour", key))
    yield* Step.sleep("rest", "2 hours")
    return `Baked${hasButter ? " with butter" : ""}: ${order}, ${price ?? "unknown"}`
  }))
// #endregion

/** The differences between the code of this process and the tasks that exist, as lines. */
export const checked = Effect.gen(function*() {
  const admin = yield* TaskAdmin.TaskAdmin
  const { findings } = yield* admin.check({ limit: 10_000 })
  return findings.map(({ count, details, kind, tool }) => `${tool}: ${count} ${kind}: ${details.join(", ")}`)
})

/** Code that older tasks cannot continue without a difference. */
const renamed = Task.layer(bake, () =>
  Effect.gen(function*() {
    yield* Step.run("wheat flour", {}, (key) => buy("wheat flour", key))
    yield* Step.sleep("rest", "2 hours")
    return "Baked"
  }))

const server = (definition: typeof before) =>
  McpServer.layer({ name: "bakery", version: "1.0.0" }, definition, Tasks.layer())

export const Before = server(before)
export const After = server(after)
export const Renamed = server(renamed)
