/** A parent with a child for each item, of which a fifth fail. */
import { expect } from "@effect/vitest"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { process, sqlite } from "./kit.ts"

const item = Task.make("item", { input: { n: Schema.Int, seconds: Schema.Int }, output: { twice: Schema.Int } })
export const itemLayer = Task.layer(item, ({ n, seconds }) =>
  Effect.gen(function*() {
    const twice = yield* Step.run("twice", { success: Schema.Int }, () => Effect.succeed(n * 2))
    if (seconds > 0) yield* Step.sleep("rest", `${seconds} seconds`)
    return n % 5 === 0 ? yield* Effect.fail({ message: `no ${n}` }) : { twice }
  }))

export const expected = (n: number) => n % 5 === 0 ? `no ${n}` : n * 2
const shown = (results: ReadonlyArray<Result.Result<{ readonly twice: number }, { readonly message: string }>>) =>
  JSON.stringify(results.map((each) => Result.isSuccess(each) ? each.success.twice : each.failure.message))

export const all = Task.make("all", { ttl: "20 days" })
export const allLayer = (items: ReadonlyArray<{ readonly n: number; readonly seconds: number }>, concurrency: number) =>
  Task.layer(all, () => Effect.map(Task.forEach(item, items, { concurrency, onFailure: "collect" }), shown))

/** Runs that many children on a file, and compares the results. */
export const fanOut = (count: number) =>
  Effect.gen(function*() {
    const numbers = Array.from({ length: count }, (_, n) => n)
    const definitions = [itemLayer, allLayer(numbers.map((n) => ({ n, seconds: 0 })), 20)]
    const { run } = yield* process(yield* sqlite.engine, definitions)
    const handle = yield* run(Task.submit(all, {}))
    expect(JSON.parse(yield* handle.await)).toEqual(numbers.map(expected))
    const task = yield* run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(handle.id)))
    expect(task?.children).toEqual({ live: 0, completed: count * 0.8, failed: count * 0.2 })
    expect(task?.log).toHaveLength(1)
  }).pipe(Effect.scoped)
