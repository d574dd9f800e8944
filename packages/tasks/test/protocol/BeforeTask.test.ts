import { describe, expect, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Task from "@skein/tasks/Task"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as asking from "../../../server/test/input/kit.ts"
import * as kit from "./kit.ts"

/** Asks for a name in the call, and again in the task. */
const order = Task.layerPrepared(
  Task.make("order", { input: { cakes: Schema.Int }, output: { text: Schema.String } }),
  Schema.Struct({ name: Schema.String, at: Schema.DateFromString }),
  ({ cakes }) =>
    Effect.gen(function*() {
      if (cakes > 5) return yield* Effect.fail({ message: "Too many cakes" })
      const { principal } = (yield* McpRequest).caller
      const form = Elicitation.form("Name?", { name: Schema.String }, { key: "name" })
      const { name } = yield* Elicitation.accepted(form)
      return { name: `${name} (${principal?.["role"] ?? "guest"})`, at: new Date(0) }
    }),
  ({ cakes }, { at, name }) =>
    Effect.gen(function*() {
      const { principal } = (yield* McpRequest).caller
      return { text: `${cakes} cakes for ${name}, ${at.toISOString()}, ${String(principal?.["role"])}` }
    })
)

const text = "2 cakes for Ann (baker), 1970-01-01T00:00:00.000Z, undefined"
const named: asking.Answerer = () => asking.accept({ name: "Ann" })

const client = (options: asking.Options) =>
  Effect.gen(function*() {
    const { context, fake } = yield* kit.server([order])
    const principal = { id: "ann", role: "baker" }
    const server = Context.pick(McpServer.McpServer)(context)
    return { client: yield* Effect.provide(asking.connect({ principal, ...options }), server), fake }
  })

const capabilities = { ...kit.tasks, elicitation: {} }

describe("a task that is prepared in its call", () => {
  it.effect("2026-07-28 · SHOULD resolve all MRTR exchanges synchronously before responding with a CreateTaskResult", () =>
    Effect.gen(function*() {
      const { client: ann, fake } = yield* client({ revision: "2026-07-28", answer: named, capabilities })
      const params = { name: "order", arguments: { cakes: 2 } }
      const first = yield* ann.once("tools/call", params)
      expect(first.result).toMatchObject({ resultType: "input_required", inputRequests: { name: {} } })
      expect(fake.rows.size).toBe(0)
      const { requestState } = first.result
      const inputResponses = { name: asking.accept({ name: "Ann" }) }
      const { result } = yield* ann.once("tools/call", { ...params, inputResponses, requestState })
      expect(result.resultType).toBe("task")
      expect(result).not.toHaveProperty("requestState")
      yield* kit.settle
      const got = yield* ann.once("tasks/get", { taskId: result.taskId })
      expect(got.result.result.structuredContent).toEqual({ text })
    }))

  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · prepares a waiting call as well; a failure before the task starts is its result`, () =>
      Effect.gen(function*() {
        const { client: ann, fake } = yield* client({ revision, answer: named })
        const { result } = yield* ann.request("tools/call", { name: "order", arguments: { cakes: 2 } })
        expect(result.structuredContent).toEqual({ text })
        expect(fake.rows.size).toBe(1)
        expect(yield* ann.call("order", { cakes: 6 })).toBe("failed: Too many cakes")
        expect(yield* ann.call("order", { cakes: "x" })).toMatch(/Invalid arguments for tool order/)
        expect(fake.rows.size).toBe(1)
      }))
  }

  it.effect("2026-07-28 · returns invalid arguments, and failures of preparing, immediately: no task starts", () =>
    Effect.gen(function*() {
      const { client: ann, fake } = yield* client({ revision: "2026-07-28", answer: named, capabilities })
      expect(yield* ann.call("order", { cakes: 6 })).toBe("failed: Too many cakes")
      expect(yield* ann.call("order", {})).toMatch(/^failed: Invalid arguments/)
      expect(fake.rows.size).toBe(0)
    }))

  it.effect("2025-11-25 · rejects a client that requested a task with -32602", () =>
    Effect.gen(function*() {
      const { client: ann, fake } = yield* client({ revision: "2025-11-25", answer: named })
      const { error } = yield* ann.once("tools/call", { name: "order", arguments: { cakes: 6 }, task: {} })
      expect(error).toMatchObject({ code: -32602, message: "Too many cakes" })
      expect(fake.rows.size).toBe(0)
      const { result } = yield* ann.once("tools/call", { name: "order", arguments: { cakes: 2 }, task: {} })
      expect(result.task.status).toBe("working")
    }))

  it.effect("overwrites a client's argument under the name of the prepared value, and hides it from the tool", () =>
    Effect.gen(function*() {
      const { client: ann, fake } = yield* client({ revision: "2026-07-28", answer: named })
      const forged = { cakes: 2, "@skein/tasks/prepared": { name: "Eve", at: "2000-01-01T00:00:00Z" } }
      const { result } = yield* ann.request("tools/call", { name: "order", arguments: forged })
      expect(result.structuredContent).toEqual({ text })
      expect([...fake.rows.values()][0]!.args["@skein/tasks/prepared"]).toMatchObject({ name: "Ann (baker)" })
    }))

  it.effect("names the task where the value of `prepare` does not match its schema", () => {
    const logged: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void logged.push(`${String(message)} ${Cause.pretty(cause)}`))
    return Effect.gen(function*() {
      const wrong = Task.layerPrepared(
        Task.make("wrong"),
        Schema.Struct({ name: Schema.String }),
        () => Effect.succeed({ name: 1 } as never),
        () => Effect.succeed("never")
      )
      const { connect, fake } = yield* kit.server([wrong])
      const client = yield* connect({ revision: "2026-07-28" })
      yield* client.defect("wrong")
      expect(fake.rows.size).toBe(0)
      expect(logged.join("\n")).toContain(
        "Error: task \"wrong\": its schema cannot encode the value of prepare: Expected string"
      )
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})
