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
  // The paper merchant allows ten orders a minute to each customer.
  rate: { limit: 10, period: "1 minute", key: ({ caller }) => caller.principal?.id ?? "" }
})
// #endregion

/** Holds the tasks of a tool while its printers are repaired. */
export const repair = (work: Effect.Effect<void>) =>
  Effect.gen(function*() {
    const { pause, resume } = yield* TaskAdmin
    yield* Effect.acquireUseRelease(pause("print"), () => work, () => Effect.orDie(resume("print")))
  })
