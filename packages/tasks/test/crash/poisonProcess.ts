/**
 * A process with a task that ends it, and six tasks with a long step. Reports how they have ended, once all have. The
 * arguments are the file of the tasks, and a file for the starts of the long steps.
 */
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import { appendFileSync } from "node:fs"
import { durable, ended, submit, work } from "../engine/kit.ts"

const [filename = "", starts = ""] = process.argv.slice(2)

const tools = {
  poison: durable(() => Effect.as(Step.run("poison", {}, () => Effect.sync(() => process.exit(13))), "")),
  long: durable(({ name }) =>
    Effect.as(
      Step.run("long", {}, () => {
        appendFileSync(starts, `${String(name)}\n`)
        return Effect.sleep("1500 millis")
      }),
      ""
    )
  )
}

const ends = Effect.gen(function*() {
  const names = ["1", "2", "3", "4", "5", "6"]
  const tasks = yield* Effect.forEach(names, (key) => submit("long", { key, args: { name: key } }))
  const poison = yield* submit("poison", { key: "poison" })
  yield* work(tools)
  return yield* Effect.forEach([...tasks, poison], ({ id }) => ended(id))
})

const states = await Effect.runPromise(Effect.scoped(Effect.provide(ends, SqliteTasks.layer({ filename }))))
process.send!(states.map(({ status, statusMessage, tool }) => ({ status, statusMessage, tool })))
