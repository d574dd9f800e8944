/** Which data of a call and of its task can be found in the database file and in the log. */
import { expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import { once } from "@skein/server/Once"
import * as Progress from "@skein/server/Progress"
import * as Encryption from "@skein/tasks/Encryption"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as http from "../../../server/test/http/kit.ts"
import * as kit from "../protocol/kit.ts"

/** A text that can be searched for. */
const secret = (what: string): string => `secret-${what}-qzx`

/** Data that is never stored, in any form. */
const passing = ["header", "claim", "meta"]
/** Data that is stored as texts of the task. */
const kept = ["argument", "member", "prepared", "message", "progress", "value", "failure", "defect", "once"]
  .concat(["question", "answer", "result", "undone"])

const work = Task.layerPrepared(
  Task.make("work", { input: { a: Schema.String } }),
  Schema.String,
  () => Effect.succeed(secret("prepared")),
  ({ a }, prepared) =>
    Effect.gen(function*() {
      yield* Task.setStatusMessage(secret("message"))
      yield* Progress.report({ progress: 1, message: secret("progress") })
      yield* Step.run("value", { success: Schema.String }, () => Effect.succeed(secret("value")))
      const retry = Schedule.recurs(1)
      yield* Effect.ignore(
        Step.run("failure", { error: Schema.String, retry }, () => Effect.fail(secret("failure")))
      )
      yield* Step.run("defect", {}, () => Effect.die(secret("defect"))).pipe(Effect.catchDefect(() => Effect.void))
      yield* once("once", Schema.String, Effect.succeed(secret("once")))
      yield* Step.compensate(() => Step.run("undo", { success: Schema.String }, () => Effect.succeed(secret("undone"))))
      const { name } = yield* Elicitation.accepted(
        Elicitation.form(secret("question"), { name: Schema.String }, { key: "k" })
      )
      return yield* Effect.fail({ _tag: "Failed", message: [a, prepared, name, secret("result")].join(" ") } as const)
    }).pipe(Effect.catchTag("InputError", () => Effect.succeed("")))
)

const run = (keys: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tasks-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const filename = join(folder, "tasks.db")
    const sqlite = SqliteTasks.layer({ filename })
    const engine = keys.length === 0 ? sqlite : Layer.provide(sqlite, Encryption.layer({ keys }))
    const server = McpServer.layer({ name: "test", version: "1.0.0" }, work, Tasks.layer())
    const at = yield* http.serve(Layer.provide(server, engine), {
      principal: () => ({ id: "ada", claims: { token: secret("claim") } })
    })
    const send = (method: string, params: kit.Json, name: string) =>
      Effect.map(
        http.send(
          at,
          http.modern(method, params, {
            headers: { "Mcp-Name": name, Authorization: `Bearer ${secret("header")}`, "X-Key": secret("header") },
            _meta: {
              "com.example/token": secret("meta"),
              "io.modelcontextprotocol/clientCapabilities": { ...kit.tasks, elicitation: {} }
            }
          })
        ),
        ({ json }) => json.result
      )
    const args = { a: secret("argument"), [secret("member")]: 1 }
    const { taskId } = yield* send("tools/call", { name: "work", arguments: args }, "work")
    const until = (status: string) =>
      Effect.repeat(Effect.tap(send("tasks/get", { taskId }, taskId), () => Effect.sleep(5)), {
        until: (task) => task.status === status
      })
    yield* until("input_required")
    const inputResponses = { k: { action: "accept", content: { name: secret("answer") } } }
    yield* send("tasks/update", { taskId, inputResponses }, taskId)
    const { result } = yield* until("completed")
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(secret("answer")) }] })
    // Read by another process: this process would lose its lock by closing the file.
    const bytes = [filename, `${filename}-wal`].filter(existsSync)
      .map((file) => execFileSync("cat", [file], { maxBuffer: 2 ** 28 }).toString("latin1"))
      .join("")
    expect(bytes).toContain(taskId)
    // Other users of the machine cannot read the files.
    const modes = [filename, `${filename}-wal`].filter(existsSync).map((file) => statSync(file).mode & 0o777)
    expect(new Set(modes)).toEqual(new Set([0o600]))
    return bytes
  })

const found = (text: string, whats: ReadonlyArray<string>) => whats.filter((what) => text.includes(secret(what)))

it.live("stores no headers, claims and _meta in the database; with a key no content of a task is readable there", () =>
  Effect.scoped(Effect.gen(function*() {
    const bytes = yield* run(["0123456789abcdef0123456789abcdef"])
    expect(found(bytes, [...passing, ...kept])).toEqual([])
  })))

it.live("without a key the content is readable; headers, claims and _meta are not stored. The log has neither, at any level", () => {
  const lines: Array<string> = []
  const logger = Logger.make((options) => void lines.push(JSON.stringify(Logger.formatStructured.log(options))))
  return Effect.scoped(Effect.gen(function*() {
    const bytes = yield* run([])
    expect(found(bytes, passing)).toEqual([])
    expect(found(bytes, kept)).toEqual(kept)
    expect(found(lines.join("\n"), [...passing, ...kept])).toEqual([])
  })).pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "All")
  )
})
