/** Input requests of a task. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Sampling from "../../src/Sampling.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import {
  type Json,
  pass,
  refuseSubscriptions,
  result,
  run,
  settle,
  type Shape,
  started,
  TaskServer,
  watch
} from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"
import { bounded } from "../support/fixedBounds.ts"

const form = (message: string): Json => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: { name: { type: "string" } } }
  }
})

/** A user who responds when the test instructs them to. */
class User {
  readonly asked: Array<string> = []
  readonly gone: Array<string> = []
  readonly #answers = new Map<string, Deferred.Deferred<string>>()

  answer(message: string, name: string): void {
    Deferred.doneUnsafe(this.#of(message), Effect.succeed(name))
  }

  #of(message: string): Deferred.Deferred<string> {
    const answer = this.#answers.get(message) ?? Deferred.makeUnsafe<string>()
    this.#answers.set(message, answer)
    return answer
  }

  get layer() {
    return Elicitation.layer({
      form: ({ message }) =>
        Effect.suspend(() => {
          this.asked.push(message)
          return Effect.onInterrupt(
            Effect.map(Deferred.await(this.#of(message)), (name) => Elicitation.accept({ name })),
            () => Effect.sync(() => this.gone.push(message))
          )
        })
    })
  }
}

const open = (shape: Shape, host: Layer.Layer<never>, options?: Client.Options) =>
  Effect.gen(function*() {
    const server = new TaskServer(shape)
    server.overrides["subscriptions/listen"] = refuseSubscriptions
    const client = yield* Effect.provide(Client.make(server.server.transport, options), host)
    yield* client.listToolsPage()
    return { server, client }
  })

const asking = (...messages: ReadonlyArray<string>): Json => ({
  status: "input_required",
  inputRequests: Object.fromEntries(messages.map((message) => [message, form(message)]))
})

const modern = "2026-07-28"

describe(modern, () => {
  it.effect("the client SHOULD fulfill the outstanding requests by sending tasks/update", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("who"))
      yield* pass("1 second")
      assert.deepStrictEqual(user.asked, ["who"])
      assert.strictEqual(server.count("tasks/update"), 0)
      user.answer("who", "Luca")
      yield* settle
      assert.deepStrictEqual(server.inputResponses, { who: { action: "accept", content: { name: "Luca" } } })
      server.update({ status: "completed", result: result("Hello, Luca!") })
      yield* pass("1 second")
      assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "Hello, Luca!" }])
      assert.strictEqual(server.count("tasks/update"), 1)
    }))

  it.effect("clients SHOULD deduplicate keys across consecutive polls, and not respond more than once", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("who"))
      yield* pass("10 seconds")
      user.answer("who", "Luca")
      // The server is eventually consistent, and repeats an answered request for a while.
      yield* pass("10 seconds")
      server.update({ status: "working" })
      yield* pass("2 seconds")
      server.update(asking("who"))
      yield* pass("10 seconds")
      assert.deepStrictEqual(user.asked, ["who"])
      assert.strictEqual(server.count("tasks/update"), 1)
      yield* call.stop
    }))

  it.effect("one or more tasks/update: presents several requests concurrently, and sends simultaneous responses together", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("a", "b", "c"))
      yield* pass("1 second")
      assert.deepStrictEqual(user.asked, ["a", "b", "c"])
      user.answer("b", "B")
      yield* settle
      assert.deepStrictEqual(Object.keys(server.inputResponses), ["b"])
      server.update(asking("a", "c", "d"))
      yield* pass("1 second")
      assert.deepStrictEqual(user.asked, ["a", "b", "c", "d"])
      for (const message of ["a", "c", "d"]) user.answer(message, message)
      yield* settle
      const updates = server.server.requests("tasks/update").map(({ params }) =>
        Object.keys(params!["inputResponses"] as Json)
      )
      assert.deepStrictEqual(updates, [["b"], ["a", "c", "d"]])
      yield* call.stop
    }))

  it.effect("sends a response that is ready during a tasks/update after that request has completed", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("a", "b", "c"))
      yield* pass("1 second")
      server.overrides["tasks/update"] = () => "no response"
      user.answer("a", "A")
      yield* settle
      user.answer("b", "B")
      // A poll shows the requests as open, which changes nothing.
      yield* pass("3 seconds")
      user.answer("c", "C")
      yield* settle
      assert.strictEqual(server.count("tasks/update"), 1)
      server.overrides["tasks/update"] = undefined
      const [{ id }] = server.server.requests("tasks/update") as [Json]
      server.server.send({ _tag: "Success", id, result: { resultType: "complete" } })
      yield* settle
      assert.deepStrictEqual(Object.keys(server.inputResponses), ["b", "c"])
      assert.strictEqual(server.count("tasks/update"), 2)
      yield* call.stop
    }))

  it.effect("checks all requests of a poll before it presents the first: presents none when one is unsupported", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      const { inputRequests } = asking("a", "b")
      const params = { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 5 }
      server.update({
        status: "input_required",
        inputRequests: { ...inputRequests, m: { method: "sampling/createMessage", params } }
      })
      yield* pass("1 second")
      const error = yield* call.error
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "without the service Sampling")
      assert.deepStrictEqual(user.asked, [])
    }))

  it.effect("passes the number of simultaneous requests to the form handler", () =>
    Effect.gen(function*() {
      const counts: Array<number | undefined> = []
      const forms = Layer.succeed(Elicitation.Elicitation, {
        form: (_params, _asker, count) => {
          counts.push(count)
          return Result.succeed(Effect.never)
        },
        url: undefined
      })
      const { client, server } = yield* open(modern, forms)
      const call = yield* run(client.callTool("t"))
      server.update(asking("a", "b", "c"))
      yield* pass("1 second")
      server.update(asking("a", "b", "c", "d"))
      yield* pass("1 second")
      assert.deepStrictEqual(counts, [3, 3, 3, 4])
      yield* call.stop
    }))

  it.effect("sends rejected responses again one by one, so that the valid ones arrive", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("a", "b", "c"))
      yield* pass("1 second")
      server.overrides["tasks/update"] = ({ params }) => {
        const responses = params!["inputResponses"] as Json
        if ("b" in responses) return ScriptedServer.failure(-32602, "b does not fit")
        Object.assign(server.inputResponses, responses)
        return ScriptedServer.success({ resultType: "complete" })
      }
      for (const message of ["a", "b", "c"]) user.answer(message, message)
      yield* settle
      assert.deepStrictEqual(Object.keys(server.inputResponses), ["a", "c"])
      server.update(asking("b"))
      yield* pass("2 seconds")
      assert.strictEqual(fieldsOf(yield* call.error).error?.message, "b does not fit")
      assert.strictEqual(server.count("tasks/update"), 4)
    }))

  it.effect("presents at most 8 requests to the host at once", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      const keys = Array.from("abcdefghi")
      server.update(asking(...keys))
      yield* pass("1 second")
      assert.deepStrictEqual(user.asked, keys.slice(0, 8))
      user.answer("a", "A")
      yield* settle
      assert.deepStrictEqual(user.asked, keys)
      yield* call.stop
    }))

  it.effect("withdraws a request that is no longer open, and presents it again when it reopens", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("a", "b"))
      yield* pass("1 second")
      server.update(asking("b"))
      yield* pass("1 second")
      assert.deepStrictEqual(user.gone, ["a"])
      server.update({ status: "working" })
      yield* pass("1 second")
      assert.deepStrictEqual(user.gone, ["a", "b"])
      server.update(asking("b"))
      yield* pass("1 second")
      assert.deepStrictEqual(user.asked, ["a", "b", "b"])
      yield* call.stop
      assert.deepStrictEqual(user.gone, ["a", "b", "b"])
    }))

  it.effect("sends a response again after a possible loss if the request is still open; presents no request twice", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("who"))
      yield* pass("1 second")
      server.overrides["tasks/update"] = () => ScriptedServer.failure(-32603, "Internal error")
      user.answer("who", "Luca")
      yield* pass("3 seconds")
      const failed = server.count("tasks/update")
      assert.isAtLeast(failed, 2)
      server.overrides["tasks/update"] = undefined
      yield* pass("2 seconds")
      assert.deepStrictEqual(Object.keys(server.inputResponses), ["who"])
      const sent = server.count("tasks/update")
      yield* pass("10 seconds")
      assert.strictEqual(server.count("tasks/update"), sent)
      assert.deepStrictEqual(user.asked, ["who"])
      yield* call.stop
    }))

  it.effect("fails the call for a rejected response if its request is still open, and not otherwise", () =>
    Effect.gen(function*() {
      for (const wanted of [true, false]) {
        const user = new User()
        const { client, server } = yield* open(modern, user.layer)
        const call = yield* run(client.callTool("t"))
        server.update(asking("who"))
        yield* pass("1 second")
        server.overrides["tasks/update"] = () => {
          if (!wanted) server.update({ status: "working" })
          return ScriptedServer.failure(-32602, "No")
        }
        user.answer("who", "Luca")
        yield* pass("2 seconds")
        assert.strictEqual(call.done, wanted)
        if (wanted) assert.strictEqual(fieldsOf(yield* call.error).error?.message, "No")
        else yield* call.stop
      }
    }))

  it.effect("fails the call with Unsupported when no handler supports a request, and cancels the task", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(modern, Layer.empty)
      const call = yield* run(client.callTool("t"))
      server.update(asking("who"))
      yield* pass("1 second")
      const error = yield* call.error
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "without the service Elicitation")
      assert.strictEqual(server.count("tasks/cancel"), 1)
    }))

  it.effect("waits for another client with leaveRunning", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(modern, Layer.empty)
      const task = yield* started(client)
      const seen = yield* watch(task)
      server.update(asking("who"))
      yield* pass("1 second")
      const error = yield* seen.error
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.deepStrictEqual(error.task, task.handle)
      assert.deepStrictEqual(seen.statuses, ["working", "input_required"])
      assert.strictEqual(server.count("tasks/cancel"), 0)
      // Another client resumes it.
      const user = new User()
      const other = yield* Effect.provide(Client.make(server.server.transport), user.layer)
      const again = yield* run(Effect.flatMap(other.resumeTask(task.handle), ({ result }) => result))
      user.answer("who", "Luca")
      yield* pass("1 second")
      assert.deepStrictEqual(Object.keys(server.inputResponses), ["who"])
      server.update({ status: "completed", result: result("done") })
      yield* pass("1 second")
      yield* again.value
    }))

  it.effect("fails the call with InputRefused when a handler of the host has a defect", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(modern, Elicitation.layer({ form: () => Effect.die(new Error("boom")) }))
      const call = yield* run(client.callTool("t"))
      server.update(asking("who"))
      yield* pass("1 second")
      assert.strictEqual((yield* call.error).reason._tag, "InputRefused")
    }))

  it.effect("handles sampling requests, and sends the result to the server", () =>
    Effect.gen(function*() {
      const model = Sampling.layer(() =>
        Effect.succeed({ role: "assistant", model: "m", content: { type: "text", text: "hi" } })
      )
      const { client, server } = yield* open(modern, model)
      const call = yield* run(client.callTool("t"))
      const params = { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 5 }
      server.update({ status: "input_required", inputRequests: { m: { method: "sampling/createMessage", params } } })
      yield* pass("1 second")
      assert.deepInclude(server.inputResponses["m"], { model: "m", role: "assistant" })
      yield* call.stop
    }))

  it.effect("rejects one key for two different requests", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("who"))
      yield* pass("1 second")
      user.answer("who", "Luca")
      yield* pass("1 second")
      server.update({ status: "input_required", inputRequests: { who: form("what") } })
      yield* pass("1 second")
      const error = yield* call.error
      assert.strictEqual(error.reason._tag, "InvalidResponse")
      assert.include(error.message, "two different input requests")
      assert.deepStrictEqual(user.asked, ["who"])
      assert.strictEqual(server.count("tasks/cancel"), 1)
    }))

  it.effect("treats a request with its members in another order as the same request", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking("who"))
      yield* pass("1 second")
      const { method, params: { message, mode, requestedSchema } } = form("who")
      const again = { params: { requestedSchema, message, mode }, method }
      server.update({ status: "input_required", inputRequests: { who: again } })
      yield* pass("1 second")
      assert.isFalse(call.done)
      yield* call.stop
    }))

  it.effect("fails with LimitExceeded after maxTaskInputRequests requests of a task", () =>
    Effect.gen(function*() {
      const { client, server } = yield* bounded(
        { maxTaskInputRequests: 20 },
        open(modern, Elicitation.layer({ form: () => Effect.succeed(Elicitation.decline) }))
      )
      let asked = 0
      server.overrides["tasks/get"] = () => {
        server.update(asking(`q${asked++}`))
        return ScriptedServer.success({ resultType: "complete", ...server.wireTask })
      }
      const call = yield* run(client.callTool("t"))
      for (let seconds = 0; seconds < 30; seconds++) yield* pass("1 second")
      const error = yield* call.error
      assert.strictEqual(error.reason._tag, "LimitExceeded")
      assert.include(error.message, "input requests")
      assert.strictEqual(Object.keys(server.inputResponses).length, 20)
      assert.strictEqual(server.count("tasks/cancel"), 1)
    }))

  it.effect("fails with LimitExceeded for more than 32 simultaneous requests, and presents none", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update(asking(...Array.from({ length: 33 }, (_, n) => `q${n}`)))
      yield* pass("1 second")
      assert.strictEqual((yield* call.error).reason._tag, "LimitExceeded")
      assert.deepStrictEqual(user.asked, [])
    }))

  it.effect("rejects an input request with an unknown method", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open(modern, user.layer)
      const call = yield* run(client.callTool("t"))
      server.update({ status: "input_required", inputRequests: { a: { method: "tools/call", params: {} } } })
      yield* pass("1 second")
      const error = yield* call.error
      assert.strictEqual(error.reason._tag, "InvalidResponse")
      assert.strictEqual(server.count("tasks/cancel"), 1)
    }))

  it.effect("accepts __proto__ as a key, and sends it as an own member of the response", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open(
        modern,
        Elicitation.layer({ form: () => Effect.succeed(Elicitation.decline) })
      )
      const call = yield* run(client.callTool("t"))
      server.update({ status: "input_required", inputRequests: Object.fromEntries([["__proto__", form("who")]]) })
      yield* pass("1 second")
      const [update] = server.server.requests("tasks/update")
      assert.deepStrictEqual(Object.keys(update!.params!["inputResponses"] as Json), ["__proto__"])
      yield* call.stop
    }))
})

describe("2025-11-25", () => {
  it.effect("answers a request that arrives while tasks/result waits, with related-task in the response", () =>
    Effect.gen(function*() {
      const user = new User()
      const { client, server } = yield* open("2025-11-25", user.layer)
      const call = yield* run(client.callTool("t"))
      server.update({ status: "input_required" })
      yield* pass("1 second")
      assert.strictEqual(server.count("tasks/result"), 1)
      const related = { "io.modelcontextprotocol/related-task": { taskId: "t1" } }
      server.server.send({
        _tag: "Request",
        id: "q",
        method: "elicitation/create",
        params: { ...form("who").params, _meta: related }
      })
      yield* settle
      user.answer("who", "Luca")
      yield* settle
      const answer = server.server.received.find((message) => message._tag === "Success" && message.id === "q") as Json
      assert.deepStrictEqual(answer.result, { action: "accept", content: { name: "Luca" }, _meta: related })
      server.update({ status: "working" })
      yield* pass("5 seconds")
      server.update({ status: "completed", result: result("Hello, Luca!") })
      yield* settle
      assert.deepStrictEqual((yield* call.value).content, [{ type: "text", text: "Hello, Luca!" }])
    }))
})
