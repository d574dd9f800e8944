import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Middleware from "@skein/server/Middleware"
import * as Tool from "@skein/server/Tool"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

const definitions = [tools.quick, tools.plain, tools.never, tools.hidden, tools.must]
const names = ["quick", "plain", "never", "hidden", "must"] as const

/** Whether a call returns a task, a result, or an error. */
const outcome = (client: kit.Client, name: string, params: kit.Json = {}) =>
  Effect.map(
    client.request("tools/call", { name, arguments: { n: 1 }, ...params }),
    ({ error, result }) =>
      error !== undefined
        ? error.code
        : result.resultType === "task" || result.task !== undefined
        ? "task"
        : "result"
  )

const outcomes = (who: kit.Who, params?: kit.Json) =>
  Effect.gen(function*() {
    const { connect, fake } = yield* kit.server(definitions)
    const client = yield* connect(who)
    const all = yield* Effect.forEach(names, (name) => outcome(client, name, params))
    return [Object.fromEntries(names.map((name, index) => [name, all[index]])), fake.rows.size]
  })

describe("tool calls", () => {
  it.effect("2026-07-28 · with the extension: a task if the tool supports tasks", () =>
    Effect.gen(function*() {
      expect(yield* outcomes({})).toEqual([
        { quick: "task", plain: "task", never: "result", hidden: "result", must: "task" },
        4
      ])
    }))

  it.effect("2026-07-28 · without it: the result, durable or not; -32021 if the tool requires a task", () =>
    Effect.gen(function*() {
      expect(yield* outcomes({ can: {} })).toEqual([
        { quick: "result", plain: "result", never: "result", hidden: "result", must: -32021 },
        2
      ])
    }))

  it.effect("2025-11-25 · without `task`: the result; -32601 if the tool requires a task", () =>
    Effect.gen(function*() {
      expect(yield* outcomes({ revision: "2025-11-25" })).toEqual([
        { quick: "result", plain: "result", never: "result", hidden: "result", must: -32601 },
        2
      ])
    }))

  it.effect("2025-11-25 · with `task`: a task; -32601 if `taskSupport` is absent or `forbidden`", () =>
    Effect.gen(function*() {
      expect(yield* outcomes({ revision: "2025-11-25" }, { task: { ttl: 1000 } })).toEqual([
        { quick: "task", plain: "task", never: -32601, hidden: -32601, must: "task" },
        3
      ])
    }))

  for (const revision of Revision.all.filter((revision) => revision < "2025-11-25")) {
    it.effect(`${revision} · has no tasks: the result, also of a tool that requires a task; ignores \`task\``, () =>
      Effect.gen(function*() {
        const results = Object.fromEntries(names.map((name) => [name, "result"]))
        expect(yield* outcomes({ revision })).toEqual([results, 3])
        expect(yield* outcomes({ revision }, { task: { ttl: 1000 } })).toEqual([results, 3])
      }))
  }

  it.effect("2025-11-25 · lists `execution.taskSupport`; 2026-07-28 · does not", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server(definitions)
      const listed = (client: kit.Client) =>
        Effect.map(
          client.result("tools/list"),
          ({ tools }) =>
            Object.fromEntries(tools.map(({ execution, name }: kit.Json) => [name, execution?.taskSupport]))
        )
      expect(yield* listed(yield* connect({ revision: "2025-11-25" }))).toEqual({
        quick: "optional",
        plain: "optional",
        never: undefined,
        hidden: "forbidden",
        must: "required"
      })
      const { tools } = yield* (yield* connect()).result("tools/list")
      for (const tool of tools) expect(Object.keys(tool)).not.toContain("execution")
    }))

  it.effect("2026-07-28 · `asTask` decides which calls become tasks, and is not called if the tool requires a task", () =>
    Effect.gen(function*() {
      const asked: Array<unknown> = []
      const decide: Task.ToolPolicyOptions["asTask"] = ({ args, caller }) => {
        asked.push([args, caller.revision])
        return args["n"] === 1
      }
      const plainly = Tool.make("p", {
        execution: { taskSupport: "optional" },
        metadata: Task.policy({ asTask: decide })
      })
      const { connect } = yield* kit.server([
        Task.layer(Task.make("d", { asTask: decide }), () => Effect.succeed("d")),
        Task.layer(Task.make("r", { asTask: decide, taskSupport: "required" }), () => Effect.succeed("r")),
        Tool.layer(plainly, () => Effect.succeed("p"))
      ])
      const client = yield* connect()
      const call = (name: string, n: number) => outcome(client, name, { arguments: { n } })
      expect([yield* call("d", 1), yield* call("d", 2)]).toEqual(["task", "result"])
      expect([yield* call("p", 1), yield* call("p", 2)]).toEqual(["task", "result"])
      expect(asked).toHaveLength(4)
      expect(asked[0]).toEqual([{ n: 1 }, "2026-07-28"])
      expect(yield* call("r", 2)).toBe("task")
      expect(asked).toHaveLength(4)
    }))

  it.effect("a tool that the caller may not see is unknown, task or not", () =>
    Effect.gen(function*() {
      const secret = Task.layer(
        Task.make("secret", { visible: ({ principal }) => principal?.id === "root" }),
        () => Effect.succeed("seen")
      )
      const { connect } = yield* kit.server([secret])
      expect((yield* (yield* connect()).error("tools/call", { name: "secret" })).code).toBe(-32602)
      yield* kit.begin(yield* connect({ principal: { id: "root" } }), "secret")
    }))

  it.effect("a server with a task and without `Tasks.layer` does not start, and reports why", () =>
    Effect.gen(function*() {
      const prepared = Task.layerPrepared(
        Task.make("prepared"),
        Schema.Void,
        () => Effect.void,
        () => Effect.succeed("")
      )
      for (const task of [tools.quick, prepared]) {
        const exit = yield* Effect.exit(kit.bare([task]))
        expect(String(exit)).toContain("task definitions require `Tasks.layer`: add it to the definitions")
      }
    }))

  it.effect("a task that is added to a running server without `Tasks.layer` is a defect when it is called", () =>
    Effect.gen(function*() {
      const added = Layer.effectDiscard(Task.add(Task.make("added"), () => Effect.succeed("")))
      const server = yield* kit.bare([added])
      yield* server.defect("added")
    }))
})

describe("middleware", () => {
  it.effect("2026-07-28 · changes the arguments that a task starts with, and receives its handle", () =>
    Effect.gen(function*() {
      const results: Array<unknown> = []
      const changed = Middleware.callTool((call, next) =>
        Effect.tap(
          next({ n: Number(call.arguments["n"]) + 1 }),
          (result) => Effect.sync(() => void results.push({ ...result }))
        ), { tools: ["quick"] })
      const raw = Middleware.layer((next) => (request) =>
        request.method === "tools/call"
          ? next(request.with({ params: { ...request.params, arguments: { n: 10 } } }))
          : next(request)
      )
      const { connect } = yield* kit.server([raw, changed, tools.quick])
      const client = yield* connect()
      const { taskId } = yield* kit.begin(client, "quick", { n: 1 })
      expect(results).toMatchObject([{ resultType: "task", taskId }])
      expect((yield* kit.get(client, taskId)).result.structuredContent).toEqual({ double: 22 })
    }))
})

describe("the policy of tasks", () => {
  const day = 24 * 60 * 60 * 1000
  const kept = (options: Parameters<typeof kit.server>[1], terms: Task.ToolPolicyOptions, ttl?: number) =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.server([tools.gated("bake", terms).definition], options)
      const client = yield* connect({ revision: "2025-11-25" })
      yield* client.result("tools/call", { name: "bake", task: ttl === undefined ? {} : { ttl } })
      const [{ limits, state }] = [...fake.rows.values()] as [kit.Json]
      return { ttlMs: state.ttlMs, pollIntervalMs: state.pollIntervalMs, pool: state.pool, limits }
    })

  it.effect("by default: 24 hours to live, a poll interval of one second, the pool `default`, the default limits", () =>
    Effect.gen(function*() {
      expect(yield* kept(undefined, {})).toEqual({
        ttlMs: day,
        pollIntervalMs: 1000,
        pool: "default",
        limits: {
          all: { live: 10_000, retained: 100_000 },
          client: { live: 100, retained: 1000 },
          tool: { live: 1000, retained: 10_000 }
        }
      })
    }))

  it.effect("options of a task come before options of the server, within the server's `maxTtl`", () =>
    Effect.gen(function*() {
      const options = { ttl: "2 hours", maxTtl: "3 hours", pollInterval: "5 seconds" } as const
      const hour = 60 * 60 * 1000
      expect(yield* kept(options, {})).toMatchObject({ ttlMs: 2 * hour, pollIntervalMs: 5000 })
      expect(yield* kept(options, { ttl: "1 hour", pollInterval: 10, pool: "gpu", limits: { live: 2 } })).toMatchObject(
        {
          ttlMs: hour,
          pollIntervalMs: 10,
          pool: "gpu",
          limits: { tool: { live: 2 } }
        }
      )
      expect((yield* kept(options, { ttl: "9 hours" })).ttlMs).toBe(3 * hour)
      expect((yield* kept(options, { ttl: null })).ttlMs).toBe(3 * hour)
      expect((yield* kept({ ttl: null, maxTtl: null }, {})).ttlMs).toBe(null)
      expect((yield* kept({ ttl: "2 days" }, { maxTtl: "1 hour" })).ttlMs).toBe(hour)
    }))

  it.effect("2025-11-25 · receivers MAY override the requested ttl: it is as requested up to `maxTtl`, 30 days by default", () =>
    Effect.gen(function*() {
      expect((yield* kept({}, {}, 60_000)).ttlMs).toBe(60_000)
      expect((yield* kept({}, {}, 40 * day)).ttlMs).toBe(30 * day)
      expect((yield* kept({ maxTtl: "1 hour" }, { maxTtl: "2 hours" }, day)).ttlMs).toBe(60 * 60 * 1000)
      expect((yield* kept({ maxTtl: null }, {}, 400 * day)).ttlMs).toBe(400 * day)
    }))

  it.effect("counts the tasks of each principal separately: at the limit of one, others can create tasks", () =>
    Effect.gen(function*() {
      const { connect, fake } = yield* kit.server([tools.gated().definition], { limits: { perClient: { live: 2 } } })
      const alice = yield* connect({ principal: { id: "alice" } })
      yield* kit.begin(alice, "bake")
      yield* kit.begin(alice, "bake")
      expect((yield* alice.error("tools/call", { name: "bake" })).code).toBe(-32603)
      yield* kit.begin(yield* connect({ principal: { id: "bob" } }), "bake")
      const client = { live: 2, retained: 1000 }
      expect([...fake.rows.values()].map(({ limits }) => limits.client)).toEqual([client, client, client])
    }))

  it.effect("counts the tasks of each client without a principal separately", () =>
    Effect.gen(function*() {
      const { connect } = yield* kit.server([tools.gated().definition], { limits: { perClient: { live: 2 } } })
      const one = yield* connect({})
      yield* kit.begin(one, "bake")
      yield* kit.begin(one, "bake")
      expect((yield* one.error("tools/call", { name: "bake" })).code).toBe(-32603)
      yield* kit.begin(yield* connect({}), "bake")
    }))
})
