/** `skein call --task` and `skein tasks` on a server, over HTTP. */
import { assert, describe, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Sampling from "@skein/server/Sampling"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Terminal } from "../src/internal/base/process.ts"
import { answering, listen, skein, starting } from "./serverKit.ts"

const bake = Task.layer(
  Task.make("bake", { description: "Bakes cakes.", input: { cakes: Schema.Int } }),
  ({ cakes }) => Effect.succeed(`${cakes} cakes`)
)

const rest = Task.layer(
  Task.make("rest", { description: "Lets the dough rest." }),
  () => Effect.as(Step.sleep("rest", "2 hours"), "rested")
)

/** Asks twice. */
const ship = Task.layer(
  Task.make("ship", { description: "Ships cakes." }),
  () =>
    Effect.gen(function*() {
      const { address, express } = yield* Elicitation.accepted(Elicitation.form("Where to?", {
        address: Schema.String,
        express: Schema.optionalKey(Schema.Boolean)
      }))
      const { box } = yield* Elicitation.accepted(
        Elicitation.form("Which box?", { box: Elicitation.choice({ s: "Small", l: "Large" }) })
      )
      return `${box} to ${address}${express === true ? ", express" : ""}`
    })
)

/** Asks a language model. */
const praise = Task.layer(
  Task.make("praise", { description: "Praises cakes." }),
  () =>
    Effect.map(
      Sampling.createMessage({ messages: [{ role: "user", content: { type: "text", text: "Praise" } }], maxTokens: 9 }),
      ({ content }) => JSON.stringify(content)
    )
)

/** Serves tasks. Returns the URL. */
const bakery = Effect.gen(function*() {
  const server = Layer.provide(
    McpServer.layer({ name: "bakery", version: "1.0.0" }, bake, rest, ship, praise, Tasks.layer()),
    MemoryTasks.layer()
  )
  const mounted = yield* Effect.acquireRelease(
    Effect.promise(() => NodeHttp.mount(server)),
    (mounted) => Effect.promise(() => mounted.close())
  )
  return yield* listen((request, response) => void mounted.handler(request, response))
})

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(`skein tasks · a server of ${revision}`, () => {
    const run = (command: ReadonlyArray<string>, ...operands: ReadonlyArray<string>) =>
      skein(...command, "--revision", revision, ...operands)

    it.live("starts a call as a task, shows it, and waits for its result", () =>
      Effect.gen(function*() {
        const url = yield* bakery
        const started = yield* run(["call", "--task"], url, "bake", "cakes=3")
        assert.deepStrictEqual([started.code, started.err, started.out.length], [0, [], 1])
        const id = started.out[0]!
        const waited = yield* run(["tasks", "wait"], url, id)
        assert.deepStrictEqual([waited.code, waited.out], [0, ["3 cakes"]])
        const result = yield* run(["tasks", "result", "--json"], url, id)
        assert.deepStrictEqual(JSON.parse(result.out[0]!).content, [{ type: "text", text: "3 cakes" }])
        const shown = yield* run(["tasks", "show"], url, id)
        assert.match(shown.out[0]!, new RegExp(`^task ${id}\n  status    completed\n`))
        const ended = yield* run(["tasks", "cancel"], url, id)
        assert.deepStrictEqual([ended.code, ended.err], [1, ["skein: The task has ended already"]])
      }))

    it.live("has no result before the end, and cancels a task", () =>
      Effect.gen(function*() {
        const url = yield* bakery
        const started = yield* run(["call", "--task", "--json"], url, "rest")
        const { taskId: id, tool } = JSON.parse(started.out[0]!)
        assert.strictEqual(tool, "rest")
        const early = yield* run(["tasks", "result"], url, id)
        assert.deepStrictEqual([early.code, early.out], [1, []])
        assert.match(early.err[0]!, /no result yet: its status is working\. skein tasks wait waits for it$/)
        const cancelled = yield* run(["tasks", "cancel"], url, id)
        assert.deepStrictEqual([cancelled.code, cancelled.out], [0, ["The server was asked to cancel the task."]])
        const shown = yield* run(["tasks", "show", "--json"], url, id)
        assert.strictEqual(JSON.parse(shown.out[0]!).status, "cancelled")
      }))

    it.live("leaves a question open without a terminal, prints it, and answers it with --answer", () =>
      Effect.gen(function*() {
        const url = yield* bakery
        const [id] = (yield* run(["call", "--task"], url, "ship")).out
        const asked = [
          "Not answered, because there is no terminal to answer on: Where to?",
          "  --answer address=<string>",
          "  [--answer express=<yes or no>]"
        ].join("\n")
        const open = "skein: The task waits for an answer: run the command again with --answer, or on a terminal"
        for (const command of [["tasks", "wait", url, id!], ["call", "--resume", id!, url]]) {
          const { code, err, out } = yield* run(command)
          assert.deepStrictEqual([code, out, err], [6, [], [asked, open]])
        }
        const wrong = yield* run(["tasks", "wait", "--answer", "addres=Here"], url, id!)
        assert.deepStrictEqual([wrong.code, wrong.err], [5, [
          "Not answered, because the form has no field addres; it has: address, express: Where to?",
          "skein: The task waits for an answer that fits"
        ]])
        const first = yield* run(["tasks", "wait", "--answer", "address=Here", "--answer", "express=yes"], url, id!)
        assert.deepStrictEqual([first.code, first.err], [5, [
          "Answered with the values of the command line: Where to?",
          "Not answered, because the form has no field address, express; it has: box (for several forms, --answers takes " +
          "a file with an array that has an object for each): Which box?",
          "skein: The task waits for an answer that fits"
        ]])
        const done = yield* run(["tasks", "wait", "--answer", "box=Large"], url, id!)
        assert.deepStrictEqual([done.code, done.out], [0, ["l to Here, express"]])
      }))

    it.live("leaves a question open at the end of the input of a terminal, wherever it comes", () =>
      Effect.gen(function*() {
        const url = yield* bakery
        const [id] = (yield* run(["call", "--task"], url, "ship")).out
        const typing = (lines: ReadonlyArray<string>, command: ReadonlyArray<string>) => {
          const left = [...lines]
          const terminal: Terminal = { writeLine: () => Effect.void, readLine: () => Effect.sync(() => left.shift()) }
          return starting([...command, "--revision", revision, url, id!], { terminal }).running
        }
        const open = "skein: The task waits for an answer: run the command again to give it"
        for (const lines of [[], ["y"], ["y", "Here", "yes"]]) {
          const { code, err, out } = yield* typing(lines, ["tasks", "wait"])
          assert.deepStrictEqual([code, out, err], [6, [], [open]])
        }
        const resumed = yield* starting(["call", "--revision", revision, "--resume", id!, url], {
          terminal: { writeLine: () => Effect.void, readLine: () => Effect.succeed(undefined) }
        }).running
        assert.deepStrictEqual([resumed.code, resumed.err], [6, [open]])
        const done = yield* typing(["y", "Here", "-", "y", "y", "Large", "y"], ["tasks", "wait"])
        assert.deepStrictEqual([done.code, done.out], [0, ["l to Here"]])
      }))

    it.live("leaves a sampling request open at the end of the input", () =>
      Effect.gen(function*() {
        const url = yield* bakery
        const [id] = (yield* run(["call", "--task", "--sampling", "unused"], url, "praise")).out
        const terminal: Terminal = { writeLine: () => Effect.void, readLine: () => Effect.succeed(undefined) }
        const ended = yield* starting(["tasks", "wait", "--revision", revision, url, id!], { terminal }).running
        const open = "skein: The task waits for an answer: run the command again to give it"
        assert.deepStrictEqual([ended.code, ended.err], [6, [open]])
        const done = yield* run(["tasks", "wait", "--sampling", "Sweet"], url, id!)
        assert.deepStrictEqual([done.code, done.out], [0, ["[{\"type\":\"text\",\"text\":\"Sweet\"}]"]])
      }))

    it.live("exits with 1 for a task that does not exist", () =>
      Effect.gen(function*() {
        const url = yield* bakery
        for (const command of ["show", "wait", "result", "cancel"]) {
          const { code, err, out } = yield* run(["tasks", command], url, "none")
          assert.deepStrictEqual([code, out, err], [1, [], ["skein: The server has no task none"]])
        }
      }))
  })
}

describe("skein tasks list · a server", () => {
  const task = (taskId: string, status: string) => ({
    taskId,
    status,
    statusMessage: "The\u001b[2J dough",
    createdAt: new Date(Date.now() - 90_000).toISOString(),
    lastUpdatedAt: new Date().toISOString(),
    ttl: null
  })
  const server = answering(
    {
      initialize: {
        protocolVersion: "2025-11-25",
        capabilities: { tasks: { list: {}, cancel: {} } },
        serverInfo: { name: "lister", version: "1.0.0" }
      },
      "tasks/list": { tasks: [task("a", "working"), task("b", "completed")] }
    },
    () => ({ code: -32601, message: "no such method" })
  )

  it.live("lists tasks in a session of 2025-11-25, by status and up to a limit", () =>
    Effect.gen(function*() {
      const url = yield* server
      const all = yield* skein("tasks", "list", url)
      assert.deepStrictEqual([all.code, all.err], [0, []])
      assert.match(all.out[0]!, /^ID +STATUS +AGE +MESSAGE\na +working +\d+\w* +The/)
      assert.strictEqual(all.out[0]!.split("\n").length, 3)
      assert.include(all.out[0]!, "The\\u{1b}[2J dough")
      const some = yield* skein("tasks", "list", url, "--status", "completed", "--json")
      assert.deepStrictEqual(JSON.parse(some.out[0]!).map((each: { readonly taskId: string }) => each.taskId), ["b"])
      const one = yield* skein("tasks", "list", url, "--limit", "1", "--json")
      assert.strictEqual(JSON.parse(one.out[0]!).length, 1)
    }))

  it.live("reads at most 1,000 pages of a listing that does not end, and says so", () =>
    Effect.gen(function*() {
      let pages = 0
      const url = yield* answering({
        initialize: {
          protocolVersion: "2025-11-25",
          capabilities: { tasks: { list: {}, cancel: {} } },
          serverInfo: { name: "lister", version: "1.0.0" }
        },
        "tasks/list": () => {
          pages++
          return { tasks: [task(`t${pages}`, pages === 1 ? "completed" : "working")], nextCursor: "more" }
        }
      }, () => ({ code: -32601, message: "no such method" }))
      const { code, err, out } = yield* skein("tasks", "list", url, "--status", "completed", "--json")
      assert.deepStrictEqual(JSON.parse(out[0]!).map((each: { readonly taskId: string }) => each.taskId), ["t1"])
      assert.deepStrictEqual([code, err, pages], [0, [
        "The server has more than 1000 pages of tasks: those of further pages are not listed"
      ], 1_000])
    }))

  it.live("reports a server that does not list tasks, and where an operator lists them", () =>
    Effect.gen(function*() {
      const url = yield* answering({
        initialize: {
          protocolVersion: "2025-11-25",
          capabilities: { tasks: { cancel: {} } },
          serverInfo: { name: "lister", version: "1.0.0" }
        }
      }, () => ({ code: -32601, message: "no such method" }))
      const { code, err } = yield* skein("tasks", "list", url)
      assert.notStrictEqual(code, 0)
      assert.match(err.join(), /lists no tasks for this caller: .*--sqlite or --postgres/)
    }))

  it.live("reports that 2026-07-28 has no listing", () =>
    Effect.gen(function*() {
      const { code, err } = yield* skein("tasks", "list", "--revision", "2026-07-28", yield* server)
      assert.strictEqual(code, 2)
      assert.match(err[0]!, /In 2026-07-28 a server does not list its tasks: name a task by its id/)
    }))
})

describe("the command lines of skein tasks", () => {
  it.effect("report operands and options that do not fit", () =>
    Effect.gen(function*() {
      const url = "https://tea.example/mcp"
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [["show"], "<id> is required"],
        [["show", url, "t1", "more"], "Unexpected arguments: more"],
        [["list", url, "more"], "Unexpected arguments: more"],
        [["list", "--tool", "bake", url], "--tool needs a store"],
        [["show", "--values", url, "t1"], "--values needs a store"],
        [["cancel", "--message", "closed", url, "t1"], "--message needs a store"],
        [["show", "--sqlite", "tasks.db", url, "t1"], "--sqlite and --postgres cannot be used with a server"],
        [["show", "--header", "a: b", "t1"], "The options of a connection need a server"],
        [["wait", "t1"], "A server is required before the id"],
        [["show", "--config", "mcp.json", "t1"], "--server is required"]
      ]
      for (const [words, message] of cases) {
        const { code, err } = yield* skein("tasks", ...words)
        assert.strictEqual(code, 2, words.join(" "))
        assert.include(err.join("\n"), message)
      }
    }))
})
