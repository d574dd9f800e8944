/** Shared by the tests of the tasks of 2025-11-25: a server with tools of all kinds, and raw clients. */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { Connection, Principal } from "@skein/runtime/Connection"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpError from "@skein/server/McpError"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "../../../server/test/kit.ts"
import { FakeTasks, layer as engine } from "../fakeEngine.ts"

export { settle } from "../../../server/test/kit.ts"
export type { Json } from "../../../server/test/kit.ts"

export const revision = "2025-11-25"
export const relatedTask = "io.modelcontextprotocol/related-task"
export const status = "notifications/tasks/status"
export const cancelled = "notifications/cancelled"

const optional = { taskSupport: "optional" } as const

/** Never ends. */
export const sleep = Tool.layer(Tool.make("sleep", { execution: optional }), () => Effect.never)
export const required = Tool.layer(
  Tool.make("required", { execution: { taskSupport: "required" } }),
  () => Effect.succeed("done")
)
export const plain = Tool.layer(Tool.make("plain"), () => Effect.succeed("at once"))
export const forbidden = Tool.layer(
  Tool.make("forbidden", { execution: { taskSupport: "forbidden" } }),
  () => Effect.succeed("at once")
)
export const sum = Tool.layer(
  Tool.make("sum", {
    input: { a: Schema.Finite, b: Schema.Finite },
    output: { sum: Schema.Finite },
    execution: optional
  }),
  ({ a, b }) => Effect.succeed({ sum: a + b })
)
class Cold extends Data.TaggedError("Cold")<{ readonly message: string }> {}

/** Fails like a tool, or with an error of the protocol. */
export const fail = Tool.layer(
  Tool.make("fail", { input: { how: Schema.Literals(["tool", "protocol", "defect"]) }, execution: optional }),
  ({ how }): Effect.Effect<never, Cold | McpError.McpError> =>
    how === "tool"
      ? Effect.fail(new Cold({ message: "The oven is cold" }))
      : how === "protocol"
      ? Effect.fail(McpError.other(-32020, "No such cake", { cake: 1 }))
      : Effect.die("secret")
)
/** Asks two questions, one after the other. */
export const book = Task.layer(Task.make("book"), () =>
  Effect.gen(function*() {
    const { people } = yield* Elicitation.accepted(Elicitation.form("How many?", { people: Schema.Int }))
    yield* Task.setStatusMessage("Looking for a table")
    const { name } = yield* Elicitation.accepted(Elicitation.form("Whose name?", { name: Schema.String }))
    return `${people} for ${name}`
  }))
/** Reports two steps, a second apart. */
export const bake = Task.layer(Task.make("bake"), () =>
  Effect.gen(function*() {
    yield* Effect.sleep("1 second")
    yield* Progress.report({ progress: 1, total: 2, message: "Dough" })
    yield* Effect.sleep("1 second")
    yield* Task.setStatusMessage("In the oven")
    yield* Progress.report({ progress: 2, total: 2 })
    yield* Effect.sleep("1 second")
    return "A cake"
  }))

export const all = [sleep, required, plain, forbidden, sum, fail, book, bake]

/** A reader that may be slow: while it is closed, sent messages are not read. */
export class Gate {
  closed = false
  readonly #waiting: Array<(done: Effect.Effect<void>) => void> = []

  readonly drained: Effect.Effect<void> = Effect.callback((resume) => {
    if (!this.closed) return resume(Effect.void)
    this.#waiting.push(resume)
  })

  open(): void {
    this.closed = false
    for (const resume of this.#waiting.splice(0)) resume(Effect.void)
  }
}

/** How a client connects. */
export interface As {
  readonly revision?: Revision
  readonly capabilities?: JsonObject
  readonly principal?: Principal
  readonly gate?: Gate
}

export const forms = { elicitation: { form: {} } }

/** A server on the fake engine, and its clients. */
export const set = (
  options: Tasks.Options = {},
  definitions: ReadonlyArray<McpServer.Definitions> = all
) =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "test", version: "1" }, ...definitions, Tasks.layer(options))
    const scope = yield* Scope.make()
    const layer = Layer.provideMerge(server as Layer.Layer<McpServer.McpServer, unknown, never>, engine)
    const context = yield* Scope.provide(Layer.build(layer), scope)
    const made = Context.get(context, McpServer.McpServer)
    const connect = ({ capabilities = {}, gate, principal, revision: spoken = revision }: As = {}) =>
      Effect.gen(function*() {
        const slow = gate === undefined ? made : {
          ...made,
          serve: (connection: Connection) =>
            made.serve({
              open: (receiver) => connection.open(receiver),
              send: (message) => connection.send(message) && !gate.closed,
              drained: gate.drained,
              close: connection.close
            })
        }
        const client = yield* kit.linkAs(slow, principal, spoken)
        if (spoken === "2026-07-28") return client
        yield* client.result("initialize", { ...kit.hello(spoken), capabilities })
        client.notify("notifications/initialized")
        yield* kit.settle
        return client
      })
    return {
      context,
      server: made,
      fake: Context.get(context, FakeTasks),
      connect,
      close: Scope.close(scope, Exit.void)
    }
  })

/** Calls a tool as a task, and returns the id. */
export const make = (
  client: kit.Client,
  name: string,
  args?: kit.Json,
  more?: kit.Json
): Effect.Effect<string> =>
  Effect.map(
    client.result("tools/call", { name, task: {}, ...(args === undefined ? undefined : { arguments: args }), ...more }),
    ({ task }) => task.taskId
  )

/** Advances time, and lets all fibers that wake up continue. */
export const pass = (time: Duration.Input) =>
  Effect.andThen(Effect.andThen(kit.settle, TestClock.adjust(time)), kit.settle)

/** The questions that a client was asked, in order. */
export const asked = (client: kit.Client): ReadonlyArray<kit.Json> =>
  client.received.filter(({ id, method }) => method !== undefined && id !== undefined)

/** The ids of the questions that were withdrawn. */
export const withdrawn = (client: kit.Client): ReadonlyArray<kit.Json> =>
  client.notices(cancelled).map(({ params }) => params.requestId)

/** Answers a question. */
export const reply = (client: kit.Client, { id }: kit.Json, result: JsonObject): Effect.Effect<void> =>
  Effect.andThen(Effect.sync(() => client.answerRaw(JsonRpc.success(id, result))), kit.settle)

export const accept = (content: JsonObject): JsonObject => ({ action: "accept", content })

/** A client of a server without tasks. */
export const bare = (...definitions: ReadonlyArray<McpServer.Definitions>) =>
  kit.client(kit.server(...definitions) as kit.Server, revision)
