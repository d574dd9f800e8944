/** Requests that the client retries when their response was lost, and the bounds on retries. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import { ConnectionLost, MessageRejected, OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type * as Reconnect from "../../src/Reconnect.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { quiet, until } from "../connection/support.ts"
import { fieldsOf } from "../support/fields.ts"

const answer = (request: JsonRpc.Request) =>
  ScriptedServer.success(
    request.method === "tools/call"
      ? { content: [], resultType: "complete" }
      : { tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" }
  )

const exact: Reconnect.Policy = { jitter: "none" }

/** A client, and the outcome of each attempt to send a request that is not part of a handshake. */
const open = (
  fates: ReadonlyArray<ScriptedServer.Delivery>,
  options: Client.Options = {},
  revision: Revision.Revision = "2025-11-25"
) =>
  Effect.gen(function*() {
    const line = ScriptedServer.make(ScriptedServer.handshake(revision, answer))
    const sent: Array<string> = []
    line.onRequest = ({ method }) => {
      if (!method.startsWith("tools/")) return undefined
      sent.push(method)
      return fates[sent.length - 1]
    }
    const client = yield* Client.make(line.transport, { revisions: [revision], reconnect: exact, ...options })
    return { client, line, sent }
  })

const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

const refusal = (status: number, more?: { readonly undelivered?: boolean; readonly retryAfter?: number }) =>
  new TransportError({ reason: new MessageRejected({ message: `HTTP ${status}`, status }), ...more })

/** Advances the clock in steps, with turns of the event loop between them. */
const pass = (seconds: number) =>
  Effect.gen(function*() {
    for (let i = 0; i < seconds * 2; i++) {
      yield* TestClock.adjust(500)
      yield* quiet
    }
  })

describe("a request whose connection is lost before the response", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · is retried on the next connection if it may be repeated`, () =>
      Effect.gen(function*() {
        const { client, line, sent } = yield* open(["lose"], {}, revision)
        const fiber = yield* fork(client.listToolsPage())
        yield* pass(1)
        assert.deepStrictEqual((yield* Fiber.join(fiber)).tools, [])
        assert.deepStrictEqual(sent, ["tools/list", "tools/list"])
        assert.strictEqual(line.attempts, 2)
      }))
  }

  it.effect("is not retried if it may not be repeated, because a tool may have run", () =>
    Effect.gen(function*() {
      const { client, sent } = yield* open(["lose"])
      const error = yield* Effect.flip(client.callTool("pay"))
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(error.undelivered, undefined)
      yield* pass(2)
      assert.deepStrictEqual(sent, ["tools/call"])
    }))

  it.effect("is not retried if its method is not defined by the protocol, because its effect is unknown", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open([])
      const sent: Array<string> = []
      line.onRequest = ({ method }) => {
        if (!method.startsWith("acme/")) return undefined
        sent.push(method)
        return sent.length === 1 ? "lose" : undefined
      }
      const pay = { ...Method.ListTools, name: "acme/pay" }
      assert.strictEqual((yield* Effect.flip(client.request(pay, {}))).reason._tag, "Closed")
      yield* pass(2)
      assert.deepStrictEqual(sent, ["acme/pay"])
      sent.length = 0
      const fiber = yield* fork(client.request(pay, {}, { retry: true }))
      yield* pass(2)
      assert.deepStrictEqual((yield* Fiber.join(fiber)).tools, [])
      assert.deepStrictEqual(sent, ["acme/pay", "acme/pay"])
    }))

  it.effect("retry: true lets a tool call be repeated, retry: false forbids it for a listing", () =>
    Effect.gen(function*() {
      const tool = yield* open(["lose"])
      const called = yield* fork(tool.client.callTool("add", {}, { retry: true }))
      yield* pass(1)
      assert.deepStrictEqual((yield* Fiber.join(called)).content, [])
      assert.deepStrictEqual(tool.sent, ["tools/call", "tools/call"])
      const list = yield* open(["lose"])
      assert.strictEqual((yield* Effect.flip(list.client.listToolsPage({ retry: false }))).reason._tag, "Closed")
      assert.deepStrictEqual(list.sent, ["tools/list"])
    }))

  it.effect("retries calls of a tool that is read-only or idempotent, once it was listed", () =>
    Effect.gen(function*() {
      for (
        const [annotations, times] of [
          [{ readOnlyHint: true }, 2],
          [{ idempotentHint: true, readOnlyHint: false }, 2],
          [{ idempotentHint: false }, 1],
          [{}, 1]
        ] as const
      ) {
        const tools = [{ name: "look", inputSchema: { type: "object" }, annotations }]
        const line = ScriptedServer.make(
          ScriptedServer.handshake(
            "2025-11-25",
            (request) => request.method === "tools/list" ? ScriptedServer.success({ tools }) : answer(request)
          )
        )
        let calls = 0
        line.onRequest = ({ method }) => method === "tools/call" && ++calls === 1 ? "lose" : undefined
        const client = yield* Client.make(line.transport, { revisions: ["2025-11-25"], reconnect: exact })
        yield* client.listToolsPage()
        const fiber = yield* fork(Effect.exit(client.callTool("look")))
        yield* pass(1)
        assert.strictEqual((yield* Fiber.join(fiber))._tag, times === 2 ? "Success" : "Failure")
        assert.strictEqual(calls, times, JSON.stringify(annotations))
      }
    }))

  it.effect("is retried 3 times by default, then fails with the last error", () =>
    Effect.gen(function*() {
      for (const [maxRetries, times] of [[undefined, 4], [1, 2], [0, 1]] as const) {
        const { client, sent } = yield* open(["lose", "lose", "lose", "lose", "lose", "lose"], {
          limits: { maxRetries }
        })
        const fiber = yield* fork(Effect.flip(client.listToolsPage()))
        yield* pass(10)
        const error = yield* Fiber.join(fiber)
        assert.strictEqual(error.reason._tag, "Closed")
        assert.strictEqual(sent.length, times)
      }
    }))

  it.effect("has the remaining time of its timeout, including the wait between attempts", () =>
    Effect.gen(function*() {
      const { client, line, sent } = yield* open(["lose", "drop"])
      const fiber = yield* fork(Effect.flip(client.listToolsPage({ timeout: "2 seconds" })))
      yield* TestClock.adjust(0)
      yield* until(() => line.openConnections === 0)
      yield* TestClock.adjust(500)
      yield* until(() => sent.length === 2)
      yield* TestClock.adjust(1_499)
      assert.strictEqual(fiber.pollUnsafe(), undefined)
      yield* TestClock.adjust(1)
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.reason._tag, "Timeout")
      assert.strictEqual(error.undelivered, undefined)
    }))

  it.effect("has a full timeout when progress had extended it beyond one, and at most maxTimeout in all", () =>
    Effect.gen(function*() {
      const silent = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      const client = yield* Client.make(silent.transport, { revisions: ["2025-11-25"], reconnect: exact })
      const fiber = yield* fork(
        Effect.flip(client.listToolsPage({ timeout: 2_000, maxTimeout: 4_000, onProgress: () => {} }))
      )
      yield* until(() => silent.requests("tools/list").length === 1)
      const [request] = silent.requests("tools/list")
      const meta = request!.params!["_meta"] as { readonly progressToken: number }
      yield* TestClock.adjust(1_500)
      silent.notify("notifications/progress", { progressToken: meta.progressToken, progress: 1 })
      yield* quiet
      yield* TestClock.adjust(1_000)
      silent.lose()
      yield* until(() => silent.openConnections === 0)
      yield* TestClock.adjust(500)
      yield* until(() => silent.requests("tools/list").length === 2)
      yield* TestClock.adjust(999)
      assert.strictEqual(fiber.pollUnsafe(), undefined)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "Timeout")
      assert.strictEqual(silent.requests("tools/list").length, 2)
    }))

  it.effect("waits for a connection for at most its timeout", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open([])
      line.onConnect = () => new TransportError({ reason: new OpenFailed({ message: "no" }) })
      line.lose()
      yield* until(() => line.openConnections === 0)
      const short = yield* fork(Effect.flip(client.callTool("pay", {}, { timeout: "3 seconds" })))
      const capped = yield* fork(Effect.flip(client.callTool("pay", {}, { maxTimeout: "2 seconds" })))
      yield* TestClock.adjust(1_999)
      assert.strictEqual(capped.pollUnsafe(), undefined)
      yield* TestClock.adjust(1)
      assert.match(
        (yield* Fiber.join(capped)).message,
        /^tools\/call has waited for a connection for 2000 ms \(maxTimeout\)$/
      )
      yield* TestClock.adjust(999)
      assert.strictEqual(short.pollUnsafe(), undefined)
      yield* TestClock.adjust(1)
      const error = yield* Fiber.join(short)
      assert.strictEqual(error.reason._tag, "Timeout")
      assert.match(error.message, /for 3000 ms \(timeout\)$/)
      assert.strictEqual(error.undelivered, true)
    }))

  it.effect("reports which timeout expired when it was retried and gets no response", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open(["lose", "drop"])
      const capped = yield* fork(Effect.flip(client.listToolsPage({ maxTimeout: "9 seconds" })))
      yield* until(() => line.openConnections === 0)
      yield* pass(10)
      assert.match((yield* Fiber.join(capped)).message, /^No response to tools\/list within \d+ ms \(maxTimeout\)$/)
    }))

  it.effect("is not retried when its caller was interrupted meanwhile", () =>
    Effect.gen(function*() {
      const { client, line, sent } = yield* open(["lose"])
      const fiber = yield* fork(client.listToolsPage())
      yield* until(() => line.openConnections === 0)
      yield* Fiber.interrupt(fiber)
      yield* pass(2)
      assert.strictEqual(line.openConnections, 1)
      assert.deepStrictEqual(sent, ["tools/list"])
    }))

  it.effect("fails with the first error when no policy opens another connection", () =>
    Effect.gen(function*() {
      const { client, sent } = yield* open(["lose"], { reconnect: false })
      const error = yield* Effect.flip(client.listToolsPage())
      assert.match(error.message, /The scripted connection was lost/)
      assert.strictEqual(fieldsOf(error).end?._tag, "Lost")
      assert.deepStrictEqual(sent, ["tools/list"])
    }))
})

describe("a request on a connection that has ended", () => {
  it.effect("was not sent, and is sent on the next connection with any method", () =>
    Effect.gen(function*() {
      const { client, line, sent } = yield* open([])
      line.lose()
      // The connection has ended, and the client has not noticed yet.
      const fibers = [yield* fork(client.callTool("pay")), yield* fork(client.callTool("pay"))]
      yield* pass(1)
      for (const fiber of fibers) assert.deepStrictEqual((yield* Fiber.join(fiber)).content, [])
      assert.deepStrictEqual(sent, ["tools/call", "tools/call"])
    }))
})

describe("a refused request", () => {
  it.effect("2025-11-25 · 404 for its session: MUST start a new session, and retries unhandled requests there", () =>
    Effect.gen(function*() {
      const { client, line, sent } = yield* open([refusal(404, { undelivered: true })])
      const fiber = yield* fork(client.callTool("pay"))
      yield* until(() => sent.length === 1)
      yield* quiet
      // The refusal arrives first and the connection ends now. The request is not retried on that connection.
      line.lose(ScriptedServer.lost("The session is gone"))
      yield* pass(1)
      assert.deepStrictEqual((yield* Fiber.join(fiber)).content, [])
      assert.deepStrictEqual(sent, ["tools/call", "tools/call"])
      assert.strictEqual(line.requests("initialize").length, 2)
      const initialized = line.methods.lastIndexOf("notifications/initialized")
      assert.isBelow(initialized, line.methods.lastIndexOf("tools/call"))
    }))

  it.effect("2025-11-25 · 404 in the same turn as the end of the connection, in either order", () =>
    Effect.gen(function*() {
      for (const first of ["refused", "lost"] as const) {
        const { client, line, sent } = yield* open([])
        const { onRequest } = line
        line.onRequest = (request) => {
          const usual = onRequest(request)
          if (sent.length !== 1 || request.method !== "tools/call") return usual
          if (first === "lost") line.lose(ScriptedServer.lost("The session is gone"))
          else queueMicrotask(() => queueMicrotask(() => line.lose(ScriptedServer.lost("The session is gone"))))
          return refusal(404, { undelivered: true })
        }
        const fiber = yield* fork(Effect.exit(client.callTool("pay")))
        yield* pass(2)
        const exit = yield* Fiber.join(fiber)
        // When the connection was lost first, the client cannot know whether the request was handled.
        assert.strictEqual(exit._tag, first === "refused" ? "Success" : "Failure")
        assert.strictEqual(sent.length, first === "refused" ? 2 : 1)
        assert.strictEqual(line.requests("initialize").length, 2)
      }
    }))

  it.effect("2026-07-28 · is retried on the same connection after a backoff if it was not handled", () =>
    Effect.gen(function*() {
      const refused = new TransportError({ reason: new ConnectionLost({ message: "ECONNREFUSED" }), undelivered: true })
      const { client, line, sent } = yield* open([refused, refused], {}, "2026-07-28")
      const fiber = yield* fork(client.callTool("pay"))
      yield* until(() => sent.length === 1)
      yield* TestClock.adjust(499)
      yield* quiet
      assert.strictEqual(sent.length, 1)
      yield* TestClock.adjust(1)
      yield* until(() => sent.length === 2)
      yield* TestClock.adjust(999)
      yield* quiet
      assert.strictEqual(sent.length, 2)
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      assert.strictEqual(line.attempts, 1)
      assert.strictEqual(sent.length, 3)
    }))

  it.effect("is retried after 429, 502, 503 or 504 if it may be repeated, and not after other statuses", () =>
    Effect.gen(function*() {
      for (const status of [429, 502, 503, 504, 400, 404, 405, 500]) {
        const busy = [429, 502, 503, 504].includes(status)
        const list = yield* open([refusal(status)], {}, "2026-07-28")
        const listed = yield* fork(Effect.exit(list.client.listToolsPage()))
        yield* pass(1)
        assert.strictEqual((yield* Fiber.join(listed))._tag, busy ? "Success" : "Failure", `tools/list: ${status}`)
        assert.strictEqual(list.sent.length, busy ? 2 : 1)
        const tool = yield* open([refusal(status)], {}, "2026-07-28")
        const called = yield* Effect.flip(tool.client.callTool("pay"))
        assert.deepStrictEqual([called.reason._tag, fieldsOf(called).status], ["HttpError", status])
        yield* pass(1)
        assert.strictEqual(tool.sent.length, 1)
      }
    }))

  it.effect("is retried after an unhandled refusal with a temporary status, and not after a permanent one", () =>
    Effect.gen(function*() {
      for (const status of [404, 405, 406, 413, 415, 431, 501, 408, 425, 429]) {
        const again = [408, 425, 429].includes(status)
        const { client, sent } = yield* open([refusal(status, { undelivered: true })], {}, "2026-07-28")
        const called = yield* fork(Effect.result(client.callTool("pay")))
        yield* pass(1)
        const result = yield* Fiber.join(called)
        assert.strictEqual(sent.length, again ? 2 : 1, String(status))
        assert.strictEqual(result._tag, again ? "Success" : "Failure")
        if (result._tag === "Failure") assert.strictEqual(result.failure.undelivered, true)
      }
    }))

  it.effect("is never retried after 401, because waiting does not change credentials", () =>
    Effect.gen(function*() {
      const { client, sent } = yield* open([refusal(401)], {}, "2026-07-28")
      assert.strictEqual((yield* Effect.flip(client.listToolsPage())).reason._tag, "Unauthorized")
      yield* pass(2)
      assert.strictEqual(sent.length, 1)
    }))

  it.effect("waits for the time in Retry-After, and fails at once when the remaining time is shorter", () =>
    Effect.gen(function*() {
      const patient = yield* open([refusal(503, { retryAfter: 20_000 })], {}, "2026-07-28")
      const fiber = yield* fork(patient.client.listToolsPage())
      yield* until(() => patient.sent.length === 1)
      yield* TestClock.adjust(19_999)
      yield* quiet
      assert.strictEqual(patient.sent.length, 1)
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      const hasty = yield* open([refusal(503, { retryAfter: 20_000 })], {}, "2026-07-28")
      const error = yield* Effect.flip(hasty.client.listToolsPage({ timeout: "10 seconds" }))
      assert.deepStrictEqual([error.reason._tag, fieldsOf(error).status], ["HttpError", 503])
    }))

  it.effect("is reported as not handled only if no attempt was handled", () =>
    Effect.gen(function*() {
      const gone = new TransportError({ reason: new ConnectionLost({ message: "ECONNREFUSED" }), undelivered: true })
      const cut = new TransportError({ reason: new ConnectionLost({ message: "ECONNRESET" }) })
      const never = yield* open([gone, gone, gone, gone], {}, "2026-07-28")
      const unsent = yield* fork(Effect.flip(never.client.callTool("pay")))
      const once = yield* open([cut, gone, gone, gone], {}, "2026-07-28")
      const perhaps = yield* fork(Effect.flip(once.client.listToolsPage()))
      const tool = yield* open([gone, cut], {}, "2026-07-28")
      const stopped = yield* fork(Effect.flip(tool.client.callTool("pay")))
      yield* pass(10)
      assert.deepStrictEqual([(yield* Fiber.join(unsent)).undelivered, never.sent.length], [true, 4])
      assert.deepStrictEqual([(yield* Fiber.join(perhaps)).undelivered, once.sent.length], [undefined, 4])
      assert.deepStrictEqual([(yield* Fiber.join(stopped)).undelivered, tool.sent.length], [undefined, 2])
    }))

  it.effect("is not retried any further when its caller is interrupted during the backoff", () =>
    Effect.gen(function*() {
      const { client, sent } = yield* open([refusal(503), refusal(503)], {}, "2026-07-28")
      const fiber = yield* fork(client.listToolsPage())
      yield* until(() => sent.length === 1)
      yield* quiet
      yield* Fiber.interrupt(fiber)
      yield* pass(5)
      assert.strictEqual(sent.length, 1)
    }))
})
