/** Tasks that ask for roots, on the real engine, in each revision that has roots. */
import { describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpServer from "@skein/server/McpServer"
import * as Roots from "@skein/server/Roots"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as asking from "../../../server/test/input/kit.ts"
import * as kit from "./kit.ts"

const roots = (uri: string, name = uri.slice(8)) => ({ roots: [{ uri, name }] })

/** A task that asks for the roots twice, and returns both answers; and a server with it. */
const scene = Effect.gen(function*() {
  const seen = { steps: 0 }
  const look = Effect.map(Roots.list(), (roots) => roots.map(({ name, uri }) => `${name} ${uri}`).join())
  const scan = Task.layer(Task.make("scan"), () =>
    Effect.gen(function*() {
      yield* Step.run("begin", {}, () => Effect.sync(() => void seen.steps++))
      const before = yield* look
      const after = yield* look
      return `${before}, then ${after}`
    }).pipe(Effect.catchTag("InputError", ({ message, reason }) => Effect.succeed(`${reason._tag}: ${message}`))))
  const made = yield* kit.server([scan], undefined, MemoryTasks.layer())
  const ask = (options: asking.Options) =>
    Effect.provide(asking.connect(options), Context.pick(McpServer.McpServer)(made.context))
  return { ...made, seen, ask }
})

const principal = { id: "ann" }
const tasks = { ...kit.tasks, roots: {} }
const twice = "a file:///a, then b file:///b"

const wait = <A>(look: Effect.Effect<A>, is: (seen: A) => boolean): Effect.Effect<A> =>
  Effect.repeat(Effect.tap(look, () => Effect.sleep(2)), { until: is })

/** The questions that a client of 2025-11-25 was asked, once there are this many. */
const asked = (client: kit.Client, count: number): Effect.Effect<ReadonlyArray<kit.Json>> =>
  wait(
    Effect.sync(() => client.received.filter(({ id, method }) => id !== undefined && method !== undefined)),
    ({ length }) => length === count
  )

const over = (client: kit.Client, taskId: string) =>
  wait(kit.get(client, taskId), ({ status }) => status !== "working" && status !== "input_required")

/** The open questions of a task for a client of 2026-07-28, once they have changed. */
const open = (client: kit.Client, taskId: string, before = "") =>
  Effect.map(
    wait(kit.get(client, taskId), ({ inputRequests = {} }) => Object.keys(inputRequests).some((key) => key !== before)),
    ({ inputRequests }) => Object.entries<kit.Json>(inputRequests)
  )

const textOf = ({ content }: kit.Json): string => content[0].text

describe("a task that asks for the client's roots", () => {
  it.live("2025-11-25 · asks on a pending `tasks/result`, each question once", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect, seen } = yield* scene
      const client = yield* connect({ revision: "2025-11-25", can: { roots: { listChanged: true } } })
      const { task: { taskId } } = yield* client.result("tools/call", { name: "scan", task: {} })
      yield* wait(kit.get(client, taskId), ({ status }) => status === "input_required")
      const waiting = client.send("tasks/result", { taskId })
      const _meta = { "io.modelcontextprotocol/related-task": { taskId } }
      const [first] = yield* asked(client, 1)
      expect(first).toMatchObject({ method: "roots/list", params: { _meta } })
      client.answerRaw(JsonRpc.success(first.id, roots("file:///a")))
      const [, second] = yield* asked(client, 2)
      client.answerRaw(JsonRpc.success(second.id, roots("file:///b")))
      expect(textOf((yield* client.answer(waiting)).result)).toBe(twice)
      for (const question of yield* asked(client, 2)) asking.conform("2025-11-25", "ListRootsRequest", question)
      expect(seen.steps).toBe(1)
    })))

  it.live("2026-07-28 · `inputRequests` contain it, `tasks/update` answers it, and an invalid answer is -32602", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect, seen } = yield* scene
      const client = yield* connect({ can: tasks })
      const { taskId } = yield* client.call("scan")
      const update = (key: string, answer: kit.Json) =>
        client.request("tasks/update", { taskId, inputResponses: { [key]: answer } })
      const [[first, question], ...others] = (yield* open(client, taskId)) as [[string, kit.Json]]
      expect([question, others]).toEqual([{ method: "roots/list" }, []])
      for (const bad of [{}, { roots: {} }, { roots: [{ name: "a" }] }, { action: "accept" }, null]) {
        expect((yield* update(first, bad)).error.code).toBe(-32602)
      }
      yield* update(first, roots("file:///a"))
      const [[second, again]] = (yield* open(client, taskId, first)) as [[string, kit.Json]]
      expect(again).toEqual(question)
      yield* update(first, roots("file:///late"))
      yield* update(second, roots("file:///b"))
      expect(textOf((yield* over(client, taskId)).result)).toBe(twice)
      expect(seen.steps).toBe(1)
    })))

  for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.live(`${revision} · a call that waits for its task asks through itself`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { ask, seen } = yield* scene
        const uris = ["file:///a", "file:///b"]
        const client = yield* ask({ revision, answer: () => roots(uris.shift()!) })
        expect(yield* client.call("scan")).toBe(twice)
        expect(client.asked.map(({ method }) => method)).toEqual(["roots/list", "roots/list"])
        expect(seen.steps).toBe(1)
      })))

    it.live(`${revision} · servers MUST NOT ask a client that has not declared \`roots\`: the task receives an error`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { ask } = yield* scene
        const client = yield* ask({ revision, capabilities: { sampling: {} } })
        expect(yield* client.call("scan")).toMatch(/^MissingCapability: .*"roots"/)
        expect(client.asked).toEqual([])
      })))
  }

  it.live("2025-11-25 · \"Roots not supported\", -32601, is an answer: the task receives it, and does not ask again", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* scene
      const client = yield* connect({ revision: "2025-11-25", can: { roots: {} } })
      const { task: { taskId } } = yield* client.result("tools/call", { name: "scan", task: {} })
      const waiting = client.send("tasks/result", { taskId })
      const [question] = yield* asked(client, 1)
      client.answerRaw(JsonRpc.failure(question.id, { code: -32601, message: "Roots not supported" }))
      expect(textOf((yield* client.answer(waiting)).result)).toMatch(/^ProtocolError: .*Roots not supported/)
      expect(yield* asked(client, 1)).toHaveLength(1)
    })))

  it.live("a task of 2026-07-28 is answered in 2025-11-25, and the other way round", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* scene
      const modern = yield* connect({ principal, can: tasks })
      const legacy = yield* connect({ principal, revision: "2025-11-25", can: { roots: {} } })

      const { taskId } = yield* modern.call("scan")
      const waiting = legacy.send("tasks/result", { taskId })
      for (const [n, uri] of [[0, "file:///a"], [1, "file:///b"]] as const) {
        const questions = yield* asked(legacy, n + 1)
        legacy.answerRaw(JsonRpc.success(questions[n].id, roots(uri)))
      }
      expect(textOf((yield* legacy.answer(waiting)).result)).toBe(twice)
      expect(textOf((yield* over(modern, taskId)).result)).toBe(twice)

      const { task } = yield* legacy.result("tools/call", { name: "scan", task: {} })
      let before = ""
      for (const uri of ["file:///a", "file:///b"]) {
        const [[key, question]] = (yield* open(modern, task.taskId, before)) as [[string, kit.Json]]
        expect(question).toEqual({ method: "roots/list" })
        yield* modern.result("tasks/update", { taskId: task.taskId, inputResponses: { [key]: roots(uri) } })
        before = key
      }
      expect((yield* over(modern, task.taskId)).status).toBe("completed")
      expect(textOf(yield* legacy.result("tasks/result", { taskId: task.taskId }))).toBe(twice)
    })))

  it.live("a client without `roots` is not asked, nor shown the question, \"MUST NOT\": it waits for another client of its owner", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect } = yield* scene
      const able = yield* connect({ principal, can: tasks })
      const unable = yield* connect({ principal })
      const legacy = yield* connect({ principal, revision: "2025-11-25", can: { elicitation: {}, sampling: {} } })
      const { taskId } = yield* able.call("scan")
      const waiting = legacy.send("tasks/result", { taskId })
      let before = ""
      for (const uri of ["file:///a", "file:///b"]) {
        const [[key]] = (yield* open(able, taskId, before)) as [[string, kit.Json]]
        const shown = yield* kit.get(unable, taskId)
        expect([shown.status, shown.inputRequests]).toEqual(["input_required", {}])
        expect(shown.statusMessage).toContain("roots/list")
        yield* able.result("tasks/update", { taskId, inputResponses: { [key]: roots(uri) } })
        before = key
      }
      expect(textOf((yield* legacy.answer(waiting)).result)).toBe(twice)
      expect(yield* asked(legacy, 0)).toEqual([])
    })))
})
