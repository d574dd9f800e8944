/** The tasks that the tests of the protocol share: each waits for the test at one point. */
import * as Elicitation from "@skein/server/Elicitation"
import * as McpError from "@skein/protocol/McpError"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Task from "@skein/tasks/Task"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A task that continues when the test lets it. */
export const gated = (name = "bake", options: Task.Options<{}, never> = {}) => {
  const gate = Deferred.makeUnsafe<string>()
  const seen = { interrupted: 0, runs: 0 }
  const definition = Task.layer(Task.make(name, options), () =>
    Effect.suspend(() => {
      seen.runs++
      return Effect.onInterrupt(Deferred.await(gate), () => Effect.sync(() => void seen.interrupted++))
    }))
  return { definition, seen, open: (text = "done") => Deferred.succeed(gate, text) }
}

/** A task that ends immediately. */
export const quick = Task.layer(
  Task.make("quick", { input: { n: Schema.Finite }, output: { double: Schema.Finite } }),
  ({ n }) => Effect.succeed({ double: 2 * n })
)

/** A plain tool that may be called as a task. */
export const plain = Tool.layer(
  Tool.make("plain", { execution: { taskSupport: "optional" } }),
  () => Effect.succeed("plain")
)

/** A plain tool without tasks. */
export const never = Tool.layer(Tool.make("never"), () => Effect.succeed("never"))

/** A task that clients never see. */
export const hidden = Task.layer(Task.make("hidden", { taskSupport: "forbidden" }), () => Effect.succeed("hidden"))

/** A tool that requires a task. */
export const must = Task.layer(Task.make("must", { taskSupport: "required" }), () => Effect.succeed("must"))

/** Returns a result with `isError`. */
export const failing = Task.layer(
  Task.make("failing"),
  () => Effect.fail({ _tag: "NoFlour", message: "There is no flour" } as const)
)

/** Fails with a JSON-RPC error. */
export const refusing = Task.layer(
  Task.make("refusing"),
  () => Effect.fail(McpError.other(1234, "Rate limit", { at: 3 }))
)

/** Dies. */
export const dying = Task.layer(Task.make("dying"), () => Effect.die(new Error("secret")))

const ask = (text: string, key: string) =>
  Effect.map(
    Elicitation.form(text, { name: Schema.String }, { key }),
    (answer) => answer.action === "accept" ? answer.content.name : answer.action
  )

/** Asks two questions at once, and one after them. */
export const asking = Task.layer(Task.make("asking"), () =>
  Effect.gen(function*() {
    yield* Task.setStatusMessage("Asking")
    const [a, b] = yield* Effect.all([ask("First?", "first"), ask("Second?", "second")], { concurrency: 2 })
    const c = yield* ask("Third?", "third")
    return `${a} ${b} ${c}`
  }).pipe(Effect.catchTag("InputError", ({ message, reason }) => Effect.succeed(`${reason._tag}: ${message}`))))

/** Reports its progress, and waits between. */
export const reporting = () => {
  const steps = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
  const definition = Task.layer(Task.make("reporting"), () =>
    Effect.gen(function*() {
      yield* Progress.report({ progress: 1, total: 2, message: "half" })
      yield* Deferred.await(steps[0]!)
      yield* Progress.report({ progress: 2, total: 2 })
      yield* Deferred.await(steps[1]!)
      return "reported"
    }))
  return { definition, next: (n: number) => Deferred.succeed(steps[n]!, undefined) }
}
