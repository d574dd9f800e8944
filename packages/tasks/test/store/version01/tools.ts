/**
 * The tools of the tasks in the databases of version 0.1, which `generate.ts` writes and `Migrations.test.ts` continues.
 */
import { once } from "@skein/server/Once"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Schedule from "effect/Schedule"
import type { SqlClient } from "effect/sql/SqlClient"
import { McpRequest } from "@skein/runtime/RequestContext"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { durable, type Handler, plain } from "../../engine/kit.ts"

/** The process that runs the tools. */
export interface World {
  /** Whether steps whose name starts with "then" never end. */
  readonly holds: boolean
  /** The steps that were executed: the tool, and the step. */
  readonly executed: Array<string>
  readonly sql: SqlClient
}

/** The key of the encrypted tasks. */
export const key = "0123456789abcdef0123456789abcdef"

/** Names that databases do not store as they are, and long ones. */
export const names = ["n".repeat(300), "nul \0", "lone \ud800", "json:x", "sealed:x", "a/b/1", "quote \" \\ ü 🙂"]

const Failure = Schema.Struct({ message: Schema.String })
const failure = (message: string) => Effect.fail({ message })

type Part = Effect.Effect<string, { readonly message: string }, CurrentTask | McpRequest>

/** The tools. Each one stops at its first step whose name starts with "then" while the world holds. */
export const makeTools = ({ executed, holds, sql }: World): Record<string, Handler> => {
  const note = (tool: string, name: string) => Effect.sync(() => void executed.push(`${tool}: ${name}`))
  /** A step that returns its name. */
  const act = (tool: string, name: string) =>
    Step.run(
      name,
      { success: Schema.String },
      () => Effect.andThen(note(tool, name), holds && name.startsWith("then") ? Effect.never : Effect.succeed(name))
    )
  const askFor = (key: string, timeout?: number | "1 hour" | "30 days") =>
    Effect.flatMap(
      McpRequest,
      (request) =>
        request.request("elicitation/create", { message: key }, { key, ...(timeout === undefined ? {} : { timeout }) })
    ) as Effect.Effect<JsonObject, Error, McpRequest>
  const askQuietly = (key: string, timeout?: "1 hour" | "30 days") =>
    Effect.match(askFor(key, timeout), {
      onFailure: () => "no answer",
      onSuccess: ({ content }) => (content as JsonObject)["text"] as string
    })
  const joined = (effects: ReadonlyArray<Part>): Part => Effect.map(Effect.all(effects), (texts) => texts.join(" "))
  const flaky = (tool: string, name: string, pause: "10 millis" | "6 seconds" | "1 hour", failures: number) => {
    let attempts = 0
    return Step.run(
      name,
      { success: Schema.String, error: Failure, retry: Schedule.spaced(pause) },
      () =>
        Effect.suspend(() => {
          executed.push(`${tool}: ${name}`)
          return ++attempts <= failures && holds ? failure("again") : Effect.succeed(name)
        })
    )
  }

  const tools: Record<
    string,
    (tool: string) => Effect.Effect<string, { readonly message: string }, CurrentTask | McpRequest>
  > = {
    steps: (tool) => joined([act(tool, "one"), flaky(tool, "two", "10 millis", 2), act(tool, "then three")]),
    sleeper: (tool) =>
      Effect.gen(function*() {
        yield* act(tool, "before")
        yield* Step.sleep("short", "20 millis")
        yield* Step.sleep("long", "1 hour")
        return yield* act(tool, "after")
      }),
    far: () => Effect.as(Step.sleep("far", "10000 days"), "far"),
    asker: (tool) => joined([act(tool, "before"), askQuietly("open", "30 days"), act(tool, "after")]),
    asksForever: (tool) => joined([askQuietly("open"), act(tool, "after")]),
    late: (tool) => joined([askQuietly("late", "1 hour"), act(tool, "after")]),
    timedOut: (tool) =>
      Effect.flatMap(
        Effect.match(askFor("gone", 20), { onFailure: () => "no answer", onSuccess: () => "answer" }),
        (text) => Effect.map(act(tool, "then"), (then) => `${text} ${then}`)
      ),
    answered: (tool) => joined([act(tool, "before"), askQuietly("nul \0"), act(tool, "then")]),
    unobserved: (tool) => joined([act(tool, "before"), askQuietly("soon"), act(tool, "after")]),
    lost: (tool) =>
      Effect.gen(function*() {
        const winner = yield* Effect.raceFirst(askQuietly("slow"), act(tool, "fast"))
        return `${winner} ${yield* act(tool, "then")}`
      }),
    race: (tool) =>
      Effect.gen(function*() {
        const slow = Effect.as(Step.sleep("slow", "1 hour"), "slow")
        const winner = yield* Effect.raceFirst(slow, act(tool, "fast"))
        return `${winner} ${yield* act(tool, "then")}`
      }),
    raceSleep: (tool) =>
      Effect.gen(function*() {
        const winner = yield* Effect.raceFirst(
          act(tool, "then slow"),
          Effect.as(Step.sleep("quick", "6 seconds"), "quick")
        )
        return `${winner} ${yield* act(tool, "then")}`
      }),
    branches: (tool) =>
      Effect.map(
        Effect.all([
          joined([act(tool, "a1"), act(tool, "then a2")]),
          Effect.andThen(Step.sleep("b", "20 millis"), joined([act(tool, "b1"), act(tool, "b2")])),
          askQuietly("c"),
          Effect.as(Step.sleep("d", "1 hour"), "d")
        ], { concurrency: "unbounded" }),
        (texts) => texts.join(", ")
      ),
    cancelled: (tool) =>
      Effect.gen(function*() {
        for (const name of ["a", "b", "c"]) {
          yield* Step.withCompensation(() => act(tool, name === "b" ? "then undo b" : `undo ${name}`))(act(tool, name))
        }
        yield* Step.sleep("long", "1 day")
        return ""
      }),
    cancelledBranches: (tool) =>
      Effect.gen(function*() {
        yield* Effect.all(
          ["a", "b", "c"].map((name, index) =>
            Step.withCompensation(() => act(tool, name === "b" ? "then undo b" : `undo ${name}`))(
              Effect.andThen(Effect.sleep(index * 100), act(tool, name))
            )
          ),
          { concurrency: "unbounded" }
        )
        yield* Step.sleep("long", "1 day")
        return ""
      }),
    failing: (tool) =>
      Effect.gen(function*() {
        yield* Step.withCompensation(() => act(tool, "then undo a"))(act(tool, "a"))
        yield* Step.withCompensation(() => act(tool, "undo b"))(act(tool, "b"))
        return yield* Step.run("c", { error: Failure }, () => Effect.andThen(note(tool, "c"), failure("c has failed")))
      }) as Effect.Effect<string, { readonly message: string }>,
    caught: (tool) =>
      Effect.gen(function*() {
        const failed = yield* Effect.match(
          Step.run("fails", { error: Failure }, () => Effect.andThen(note(tool, "fails"), failure("as expected"))),
          { onFailure: ({ message }) => message, onSuccess: () => "" }
        )
        const died = yield* Effect.catchDefect(
          Step.run("dies", {}, () => Effect.andThen(note(tool, "dies"), Effect.die(new Error("a defect")))),
          (defect) => Effect.succeed((defect as Error).message)
        )
        return `${failed}, ${died}, ${yield* act(tool, "then")}`
      }),
    transactional: (tool) =>
      Effect.gen(function*() {
        yield* Step.run("order", { transactional: true }, () =>
          Effect.orDie(Effect.andThen(note(tool, "order"), sql`INSERT INTO orders (name) VALUES ('tea')`)))
        return yield* act(tool, "then")
      }),
    once: (tool) =>
      Effect.gen(function*() {
        let failures = 0
        const flaky = once(
          "flaky",
          Schema.String,
          Effect.suspend(() => {
            executed.push(`${tool}: flaky`)
            return ++failures === 1 && holds ? failure("again") : Effect.succeed("flaky")
          })
        )
        const bad = once(
          "bad",
          Schema.String,
          Effect.suspend(() => {
            executed.push(`${tool}: bad`)
            return holds ? failure("bad") : Effect.succeed("good")
          })
        )
        const first = yield* Effect.catch(flaky, () => flaky)
        const second = yield* Effect.catch(bad, () => act(tool, "then"))
        return `${first} ${second}`
      }) as Effect.Effect<string, { readonly message: string }>,
    names: (tool) =>
      Effect.gen(function*() {
        for (const name of names) yield* act(tool, name)
        yield* Step.sleep("s".repeat(300), "20 millis")
        yield* Effect.all([Step.sleep(`long ${"s".repeat(300)}`, "6 seconds"), Step.sleep("long \0", "6 seconds")], {
          concurrency: "unbounded"
        })
        return yield* act(tool, "then")
      }),
    pauses: (tool) => flaky(tool, "step", "1 hour", 1),
    paused: (tool) => joined([flaky(tool, "step", "6 seconds", 1), act(tool, "then")]),
    missing: (tool) => act(tool, "step")
  }
  return {
    ...Object.fromEntries(Object.entries(tools).map(([tool, run]) => [tool, durable(() => run(tool))])),
    plain: plain(() => Effect.flatMap(note("plain", "run"), () => holds ? Effect.never : Effect.succeed("plain"))),
    ended: durable(() => act("ended", "step"))
  }
}

/** The tools of which the database has a task in the middle. */
export const inTheMiddle = Object.keys(makeTools({ holds: true, executed: [], sql: undefined as never }))
