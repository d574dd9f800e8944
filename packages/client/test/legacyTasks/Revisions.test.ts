/** Task-augmented requests by revision and by declared capability. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Roots from "../../src/Roots.ts"
import * as Sampling from "../../src/Sampling.ts"
import { done, inputRequired, open } from "../input/kit.ts"
import * as kit from "./kit.ts"

const model = Sampling.layer(() => Effect.succeed(kit.textAnswer("Hello")))
const user = Elicitation.layer({ form: () => Effect.succeed(Elicitation.decline) })
const sightseer = Elicitation.layer({ url: () => Effect.succeed(Elicitation.consent()) })
const methods = ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"]

const capabilities = (asking: kit.RequestingServer): kit.Json =>
  asking.server.requests("initialize")[0]!.params!["capabilities"]

describe("2025-11-25 · capabilities", () => {
  it.effect("The set of capabilities in `capabilities.tasks.requests` is exhaustive: declares the handlers of the host", () =>
    Effect.gen(function*() {
      const createMessage = { sampling: { createMessage: {} } }
      const create = { elicitation: { create: {} } }
      const cases: ReadonlyArray<readonly [Layer.Layer<never>, kit.Json]> = [
        [model, createMessage],
        [user, create],
        [sightseer, create],
        [Layer.merge(model, user), { ...createMessage, ...create }]
      ] as never
      for (const [host, requests] of cases) {
        assert.deepStrictEqual(capabilities(yield* kit.open(host)).tasks, { list: {}, cancel: {}, requests })
      }
    }))

  it.effect("declares no capability and responds -32601 when the host has no handler that supports tasks", () =>
    Effect.gen(function*() {
      for (const host of [Layer.empty, Elicitation.layer({}), Layer.orDie(Roots.layer([]))]) {
        const asking = yield* kit.open(host as Layer.Layer<never>)
        assert.notProperty(capabilities(asking), "tasks")
        for (const method of methods) {
          assert.strictEqual((yield* asking.ask(method, { taskId: "x" })).error.code, -32601)
        }
      }
    }))

  it.effect("a request type that is not declared is processed normally, ignoring task-augmentation metadata", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(Layer.merge(model, Layer.orDie(Roots.layer([]))))
      assert.deepStrictEqual((yield* asking.ask("roots/list", { task: { ttl: 1 } })).result, { roots: [] })
      // As without a task, because the client did not declare it.
      assert.strictEqual((yield* asking.ask(kit.elicitation, { ...kit.form, task: {} })).error.code, -32601)
    }))

  it.effect("taskReceiver: false declares nothing, responds -32601 to task methods, and ignores `task` in requests", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(Layer.merge(model, user), { taskReceiver: false })
      assert.notProperty(capabilities(asking), "tasks")
      for (const task of [{}, { ttl: 1000 }, 7, null]) {
        assert.strictEqual((yield* asking.ask(kit.sampling, { ...kit.message, task })).result.content.text, "Hello")
        assert.deepStrictEqual((yield* asking.ask(kit.elicitation, { ...kit.form, task })).result, {
          action: "decline"
        })
      }
      for (const method of methods) assert.strictEqual((yield* asking.ask(method, { taskId: "x" })).error.code, -32601)
      yield* kit.turns()
      assert.deepStrictEqual(asking.statusNotifications, [])
    }))

  it.effect("runs a URL elicitation as a task as well", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(sightseer)
      const address = { mode: "url", message: "Go there", url: "https://a.example/b", elicitationId: "e" }
      const { result } = yield* asking.ask(kit.elicitation, { ...address, task: {} })
      const got = yield* asking.ask("tasks/result", { taskId: result.task.taskId })
      assert.strictEqual(got.result.action, "accept")
    }))
})

for (const revision of Revision.sessionBased.filter((revision) => revision < kit.revision)) {
  describe(revision, () => {
    it.effect("has no tasks: responds to a request at once, ignores its task metadata, and lacks the task methods", () =>
      Effect.gen(function*() {
        const asking = yield* kit.open(Layer.merge(model, user), { revisions: [revision] }, revision)
        assert.notProperty(capabilities(asking), "tasks")
        const { result } = yield* asking.ask(kit.sampling, { ...kit.message, task: { ttl: 1000 } })
        assert.strictEqual(result.content.text, "Hello")
        for (const method of methods) {
          assert.strictEqual((yield* asking.ask(method, { taskId: "x" })).error.code, -32601)
        }
      }))
  })
}

describe("2026-07-28", () => {
  it.effect("has no such capability; answers an input request in the next request, without a task", () =>
    Effect.gen(function*() {
      const params = { ...kit.message, task: { ttl: 1000 } }
      const rounds = [inputRequired({ q: { method: kit.sampling, params } }), done]
      const { client, server } = yield* open("2026-07-28", model, () => rounds.shift()!)
      yield* client.callTool("t")
      const [first, second] = server.requests("tools/call")
      const meta: kit.Json = first!.params!["_meta"]
      assert.notProperty(meta["io.modelcontextprotocol/clientCapabilities"], "tasks")
      const { inputResponses }: kit.Json = second!.params
      assert.strictEqual(inputResponses.q.content.text, "Hello")
    }))

  it.effect("the client MUST NOT write JSON-RPC responses: sends none to a server that requests tasks", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(model, undefined, "2026-07-28")
      for (const method of methods) assert.isUndefined(yield* asking.ask(method, { taskId: "x" }))
    }))
})
