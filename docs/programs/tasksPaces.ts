import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region paces
export const print = Task.make("print", {
  description: "Prints cards",
  input: { cards: Schema.Int },
  // Two printers, however many workers run.
  concurrency: 2,
  // Customers take turns, and the paper merchant allows ten orders a minute to each.
  queueKey: ({ caller }) => caller.principal?.id ?? "",
  perKey: { rate: { limit: 10, period: "1 minute" } }
})
// #endregion

// #region begin
const pagesOf = ({ pages }: JsonObject) => pages as Array<string>

/** Begins when no page has changed for ten seconds, or a minute after the first one, with all pages that have. */
export const index = Task.make("index", {
  input: { pages: Schema.Array(Schema.String) },
  debounce: {
    period: "10 seconds",
    timeout: "1 minute",
    merge: (stored, next) => ({ pages: [...pagesOf(stored), ...pagesOf(next)] })
  }
})

/** Each shop is counted once at a time: a further call gets the task that counts it. */
export const count = Task.make("count", {
  input: { shop: Schema.String },
  singleton: { key: ({ args }) => String(args["shop"]), onConflict: "useExisting" }
})

/** Counts a shop after it has closed, before the others of that time. */
export const countAtNight = (shop: string) =>
  Task.submit(count, { shop }, { startAt: "2026-12-24T22:00:00Z", priority: 1 })
// #endregion

/** Holds the tasks of a tool while its printers are repaired. */
export const repair = (work: Effect.Effect<void>) =>
  Effect.gen(function*() {
    const { pause, resume } = yield* TaskAdmin
    yield* Effect.acquireUseRelease(pause("print"), () => work, () => Effect.orDie(resume("print")))
  })
