import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import { bakeOne } from "./mill.ts"

/** This process has two ovens, for any number of tasks. */
class Ovens extends Context.Service<Ovens, Semaphore.Semaphore>()("bakery/Ovens") {
  static readonly layer = Layer.effect(Ovens, Semaphore.make(2))
}

const Baking = Task.layer(
  Task.make("bake"),
  () => Step.run("bake", {}, () => Effect.flatMap(Ovens, (ovens) => ovens.withPermits(1)(bakeOne)))
).pipe(Layer.provide(Ovens.layer))

export const Scarce = McpServer.layer({ name: "bakery", version: "1.0.0" }, Baking, Tasks.layer())
