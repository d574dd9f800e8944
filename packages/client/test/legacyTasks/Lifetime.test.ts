/** The lifetime of tasks, their maximum number, and the release of their memory. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Sampling from "../../src/Sampling.ts"
import { failure, fork } from "../input/kit.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as kit from "./kit.ts"
import { bounded } from "../support/fixedBounds.ts"

const day = 24 * 60 * 60 * 1000

describe("2025-11-25 · TTL and resource management", () => {
  it.effect("MUST include the actual `ttl`; MAY override the requested one: 24 hours at most, and by default", () =>
    Effect.gen(function*() {
      const ttls = [[{}, day], [{ ttl: 60_000 }, 60_000], [{ ttl: 9 * day }, day], [{ ttl: -1 }, 0]] as const
      const asking = yield* kit.open(new kit.Host().layer)
      for (const [task, ttl] of ttls) assert.strictEqual((yield* asking.form(task)).ttl, ttl)
      const short = yield* bounded({ maxTtl: 60_000 }, kit.open(new kit.Host().layer))
      assert.strictEqual((yield* short.form()).ttl, 60_000)
      assert.strictEqual((yield* short.form({ ttl: day })).ttl, 60_000)
      const long = yield* bounded({ maxTtl: Infinity }, kit.open(new kit.Host().layer))
      assert.isNull((yield* long.form()).ttl)
      assert.strictEqual((yield* long.form({ ttl: 9 * day })).ttl, 9 * day)
    }))

  it.effect("MAY include a `pollInterval`: 1 second", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(new kit.Host().layer)
      assert.strictEqual((yield* asking.form()).pollInterval, 1000)
    }))

  it.effect("removes a task at its ttl by the clock, interrupts its handler, and fails pending requests for it", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const { taskId } = yield* asking.form({ ttl: 60_000 })
      const stays = yield* asking.form({ ttl: 60_001 })
      yield* kit.turns()
      yield* asking.ask("tasks/result", { taskId }, "early")
      yield* kit.pass(59_999)
      assert.isUndefined(asking.answerTo("early"))
      assert.strictEqual((yield* asking.get(taskId)).status, "working")
      yield* kit.pass(1)
      assert.deepStrictEqual(asking.answerTo("early").error, {
        code: -32602,
        message: "Failed to retrieve task: Task has expired"
      })
      assert.strictEqual(host.interrupted, 1)
      for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
        assert.strictEqual((yield* asking.ask(method, { taskId })).error.code, -32602)
      }
      const { result } = yield* asking.ask("tasks/list")
      assert.deepStrictEqual(result.tasks.map(({ taskId }: kit.Json) => taskId), [stays.taskId])
      assert.deepStrictEqual(asking.statusNotifications, [])
    }))

  it.effect("retains a result until the ttl, and no longer", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      const { taskId } = yield* asking.form({ ttl: 60_000 })
      yield* kit.turns()
      yield* host.fillIn()
      yield* kit.pass(59_999)
      assert.strictEqual((yield* asking.ask("tasks/result", { taskId })).result.action, "accept")
      yield* kit.pass(1)
      assert.strictEqual((yield* asking.ask("tasks/result", { taskId })).error.code, -32602)
      assert.strictEqual(host.interrupted, 0)
    }))
})

describe("2025-11-25 · SHOULD enforce limits on concurrent tasks per requestor", () => {
  it.effect("refuses one more task with -32603 without asking the host, until another task ends", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* bounded({ maxRunningTasks: 2 }, kit.open(host.layer))
      const first = yield* asking.form()
      yield* asking.form()
      const { error } = yield* asking.ask(kit.elicitation, { ...kit.form, task: {} })
      assert.deepStrictEqual(error, { code: -32603, message: "Too many tasks: at most 2 may run" })
      assert.strictEqual(host.forms.length, 2)
      // Requests without a task are not affected.
      yield* asking.ask(kit.elicitation, kit.form, "plain")
      assert.strictEqual(host.forms.length, 3)
      yield* host.fillIn(0)
      const third = yield* asking.form()
      yield* asking.ask("tasks/cancel", { taskId: third.taskId })
      yield* asking.form({ ttl: 1000 })
      yield* kit.pass(1000)
      assert.strictEqual((yield* asking.form()).status, "working")
      assert.strictEqual((yield* asking.get(first.taskId)).status, "completed")
    }))

  it.effect("at most 100 tasks run", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(new kit.Host().layer)
      for (let n = 0; n < 100; n++) yield* asking.form()
      assert.strictEqual((yield* asking.ask(kit.elicitation, { ...kit.form, task: {} })).error.code, -32603)
    }))

  it.effect("maxRetained: removes the oldest cancelled or fetched task; refuses with -32603 without such a task", () =>
    Effect.gen(function*() {
      let asked = 0
      const model = Sampling.layer(() => Effect.sync(() => kit.textAnswer(`${++asked}`)))
      const asking = yield* bounded({ maxRetained: 3 }, kit.open(model))
      const ids: Array<string> = []
      for (let n = 0; n < 3; n++) ids.push((yield* asking.message()).taskId)
      yield* kit.turns()
      const { error } = yield* asking.ask(kit.sampling, { ...kit.message, task: {} })
      assert.strictEqual(error.code, -32603)
      assert.include(error.message, "at most 3 are stored")
      assert.strictEqual(asked, 3)
      yield* asking.ask("tasks/result", { taskId: ids[2] })
      yield* asking.ask("tasks/result", { taskId: ids[1] })
      const next = yield* asking.message()
      const { result } = yield* asking.ask("tasks/list")
      assert.deepStrictEqual(result.tasks.map(({ taskId }: kit.Json) => taskId), [ids[0], ids[2], next.taskId])
      // No request waits for the end of a removed task.
      yield* kit.pass(day)
      assert.deepStrictEqual((yield* asking.ask("tasks/list")).result.tasks, [])
    }))

  it.effect("maxRetained is 1,000 by default; a result of a waiting `tasks/result` counts as fetched, and so does a cancelled task", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* bounded({ maxRunningTasks: 2_000 }, kit.open(host.layer))
      const first = yield* asking.form()
      const second = yield* asking.form()
      for (let n = 2; n < 1000; n++) {
        asking.server.send({ _tag: "Request", id: n, method: kit.elicitation, params: { ...kit.form, task: {} } })
      }
      yield* kit.turns()
      assert.strictEqual((yield* asking.ask(kit.elicitation, { ...kit.form, task: {} })).error.code, -32603)
      yield* asking.ask("tasks/result", { taskId: first.taskId }, "early")
      yield* host.fillIn(0)
      assert.property(asking.answerTo("early"), "result")
      yield* asking.form()
      assert.strictEqual((yield* asking.get(first.taskId)).code, -32602)
      yield* asking.ask("tasks/cancel", { taskId: second.taskId })
      yield* asking.form()
      assert.strictEqual((yield* asking.get(second.taskId)).code, -32602)
    }))
})

describe("ownership of tasks", () => {
  it.effect("a connection that ends removes its tasks, and the next connection does not find them", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer, { reconnect: { initialDelay: 1000, jitter: "none" } })
      const { taskId } = yield* asking.form()
      yield* kit.turns()
      asking.server.disconnect()
      yield* kit.pass(1000)
      assert.strictEqual(asking.server.connections, 2)
      assert.strictEqual(host.interrupted, 1)
      assert.strictEqual((yield* asking.get(taskId)).code, -32602)
      assert.deepStrictEqual((yield* asking.ask("tasks/list")).result.tasks, [])
      const again = yield* asking.form()
      yield* kit.turns()
      yield* host.fillIn(1)
      assert.strictEqual((yield* asking.get(again.taskId)).status, "completed")
    }))

  it.effect("closing a client removes its tasks", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const scope = yield* Scope.make()
      const asking = yield* Scope.provide(kit.open(host.layer), scope)
      yield* asking.form()
      yield* asking.message()
      yield* kit.turns()
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(host.interrupted, 2)
      assert.deepStrictEqual(asking.statusNotifications, [])
    }))

  it.effect("after 200 answered, cancelled or abandoned tasks there are as many fibers as before", () => {
    let alive = 0
    const metrics: Metric.FiberRuntimeMetricsService = {
      recordFiberStart: () => {
        alive++
      },
      recordFiberEnd: () => {
        alive--
      }
    }
    return Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer)
      yield* asking.form({ ttl: 1000 })
      yield* kit.pass("1 minute")
      const before = alive
      for (let n = 1; n <= 200; n++) {
        const { taskId } = yield* asking.form({ ttl: 1000 })
        yield* kit.turns(1)
        if (n % 3 === 0) yield* host.fillIn(n)
        if (n % 3 === 1) yield* asking.ask("tasks/cancel", { taskId })
        if (n % 50 === 0) yield* kit.pass(1000)
      }
      yield* kit.pass("1 minute")
      assert.strictEqual(alive, before)
      assert.deepStrictEqual((yield* asking.ask("tasks/list")).result.tasks, [])
    }).pipe(Effect.provideService(Metric.FiberRuntimeMetrics, metrics))
  })
})

describe("the memory of a completed task", () => {
  it.effect("retains its result and not its request, because a request may be large", () =>
    Effect.gen(function*() {
      const { gc } = globalThis
      assert.isFunction(gc, "run with --expose-gc")
      let asked = 0
      const requests: Array<WeakRef<object>> = []
      const model = Sampling.layer((request) =>
        Effect.sync(() => {
          requests.push(new WeakRef(request.messages))
          return kit.textAnswer(`${++asked}`)
        })
      )
      const asking = yield* kit.open(model)
      const ids: Array<string> = []
      for (let n = 0; n < 20; n++) ids.push((yield* asking.message({ ttl: day })).taskId)
      yield* kit.turns(20)
      assert.strictEqual(asked, 20)
      gc!()
      yield* kit.turns(1)
      gc!()
      // Values that remain on a stack may be reachable.
      assert.isBelow(requests.filter((request) => request.deref() !== undefined).length, 5)
      assert.strictEqual((yield* asking.ask("tasks/result", { taskId: ids[0] })).result.content.text, "1")
    }))
})

describe("the timeout of a call that waits for the user", () => {
  const silent: ScriptedServer.Script = ({ method }) =>
    method === "tools/call" ? "no response" : ScriptedServer.success({})

  it.effect("is paused while a task runs, and restarts when the task is over", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const asking = yield* kit.open(host.layer, undefined, kit.revision, silent)
      const call = yield* fork(asking.client.callTool("t"))
      yield* asking.form()
      yield* kit.turns()
      // In steps, because the timer checks every few seconds.
      for (let minute = 0; minute < 10; minute++) yield* kit.pass("1 minute")
      assert.isUndefined(call.pollUnsafe())
      yield* host.fillIn()
      for (let second = 0; second < 54; second++) yield* kit.pass("1 second")
      assert.isUndefined(call.pollUnsafe())
      yield* kit.pass("7 seconds")
      assert.strictEqual(failure(call)?.reason._tag, "Timeout")
    }))

  it.effect("extends up to its maxTimeout", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(new kit.Host().layer, undefined, kit.revision, silent)
      const call = yield* fork(asking.client.callTool("t", {}, { maxTimeout: "5 minutes" }))
      yield* asking.form()
      for (let minute = 0; minute < 5; minute++) yield* kit.pass("1 minute")
      assert.strictEqual(failure(call)?.reason._tag, "Timeout")
    }))

  it.effect("is not paused by a completed task", () =>
    Effect.gen(function*() {
      const asking = yield* kit.open(
        Elicitation.layer({ form: () => Effect.succeed(Elicitation.decline) }),
        undefined,
        kit.revision,
        silent
      )
      const call = yield* fork(asking.client.callTool("t"))
      yield* asking.form()
      yield* kit.pass("61 seconds")
      assert.strictEqual(failure(call)?.reason._tag, "Timeout")
      yield* Fiber.await(call)
    }))
})
