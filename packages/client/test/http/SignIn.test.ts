/** Sign-ins that take longer than the timeouts of calls. */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as ClientPool from "../../src/ClientPool.ts"
import * as Credentials from "../../src/Credentials.ts"
import * as Http from "../../src/Http.ts"
import type { Options } from "../../src/Client.ts"
import { advanceUntil, entered, type Exchange, type Json, settle, until } from "./support/connection.ts"
import { anyRevision, called, Person } from "./support/signIn.ts"

const revisions = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const

/** Three minutes in steps, with turns of the event loop in between. */
const threeMinutes = Effect.gen(function*() {
  for (let n = 0; n < 18; n++) {
    yield* TestClock.adjust("10 seconds")
    yield* settle
  }
})

const limits: Options["limits"] = { timeout: "5 seconds", maxTimeout: "6 seconds" }

const open = (url: URL, person: Person, options: Options = {}, settings: Omit<Http.Options, "url"> = {}) =>
  Client.make(Http.transport({ url, credentials: person.credentials, shutdownTimeout: 0, ...settings }), {
    limits,
    ...options
  })

const failure = <A>(fiber: Fiber.Fiber<A, ClientError>) => Effect.flip(Fiber.join(fiber))

class LoginFailed {
  readonly _tag = "LoginFailed"
  readonly url = "https://login.example/authorize?state=s"
}

describe("a sign-in of 3 minutes with a timeout of 5 seconds", () => {
  for (const revision of revisions) {
    it.effect(`${revision} · lets the handshake and the call that was refused succeed`, () =>
      Effect.gen(function*() {
        const person = new Person()
        const server = yield* ScriptedHttpServer.make<Json>(
          person.guard(anyRevision((hit) => hit.respondResult(called), { revision }))
        )
        const opening = yield* Effect.forkChild(open(server.url, person, { revisions: [revision] }))
        yield* until(() => person.asked === 1)
        yield* threeMinutes
        assert.strictEqual(opening.pollUnsafe(), undefined)
        yield* person.finish
        const client = yield* Fiber.join(opening)
        yield* person.expire
        const calling = yield* Effect.forkChild(client.callTool("t", {}, { timeout: "5 seconds" }))
        yield* until(() => person.asked === 2)
        yield* threeMinutes
        yield* person.finish
        assert.deepStrictEqual((yield* Fiber.join(calling)).content, called.content as any)
        assert.strictEqual(person.asked, 2)
      }))
  }

  it.effect("lets the detection of the revision succeed: the probe is not given up", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>(person.guard(anyRevision((hit) => hit.respondResult(called))))
      const opening = yield* Effect.forkChild(open(server.url, person, { probeTimeout: "1 second" }))
      yield* until(() => person.asked === 1)
      yield* threeMinutes
      yield* person.finish
      assert.strictEqual((yield* Fiber.join(opening)).revision, "2026-07-28")
      assert.deepStrictEqual(server.exchanges.map(({ json }) => json.method), ["server/discover", "server/discover"])
    }))

  it.effect("is waited for by HTTP+SSE, whose failure is the result", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.method === "POST" ? hit.respond(405) : person.guard((hit) => hit.openStream("event: endpoint\n\n"))(hit)
      )
      const opening = yield* Effect.forkChild(open(server.url, person, { revisions: ["2025-11-25"] }))
      yield* until(() => person.asked === 1)
      yield* threeMinutes
      assert.strictEqual(opening.pollUnsafe(), undefined)
      yield* person.fail(new LoginFailed())
      const error = yield* failure(opening)
      assert.strictEqual(error.reason._tag, "Unauthorized")
      assert.instanceOf(error.cause, LoginFailed)
    }))

  it.effect("lets a pool open its server, although its timeout is 5 seconds", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>(person.guard(anyRevision((hit) => hit.respondResult(called))))
      const pool = yield* ClientPool.make(
        {
          tea: { transport: Http.transport({ url: server.url, credentials: person.credentials, shutdownTimeout: 0 }) }
        },
        { timeout: "5 seconds" }
      )
      const waiting = yield* Effect.forkChild(pool.client("tea"))
      yield* until(() => person.asked === 1)
      yield* threeMinutes
      yield* person.finish
      assert.strictEqual((yield* Fiber.join(waiting)).revision, "2026-07-28")
      assert.strictEqual(person.asked, 1)
    }))

  it.effect("lets calls wait for the next connection, whose handshake was refused", () =>
    Effect.gen(function*() {
      const person = new Person()
      person.isSignedIn = true
      let gone = false
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (!person.allows(hit)) return
        if (hit.json?.method === "tools/call" && !gone) {
          gone = true
          person.isSignedIn = false
          return hit.respond(404)
        }
        anyRevision((hit) => hit.respondResult(called))(hit)
      })
      const client = yield* open(server.url, person, { revisions: ["2025-11-25"] })
      const calling = yield* Effect.forkChild(client.callTool("t", {}, { timeout: "5 seconds" }))
      yield* settle
      yield* TestClock.adjust("2 seconds")
      yield* until(() => person.asked === 1)
      yield* threeMinutes
      yield* person.finish
      assert.deepStrictEqual((yield* Fiber.join(calling)).content, called.content as any)
      assert.strictEqual(person.asked, 1)
    }))

  it.effect("lets the standalone stream of a session open", () =>
    Effect.gen(function*() {
      const person = new Person()
      person.isSignedIn = true
      let streams = 0
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (hit.method === "GET" && !person.allows(hit)) return
        ScriptedHttpServer.session<Json>(() => {}, {
          standaloneStream: (hit) => {
            streams++
            hit.openStream(": open\n\n")
          }
        })(hit)
        if (hit.json?.method === "initialize") person.isSignedIn = false
      })
      yield* entered({ url: server.url, credentials: person.credentials })
      yield* until(() => person.asked === 1)
      yield* threeMinutes
      yield* person.finish
      yield* until(() => streams === 1)
    }))

  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · lets a subscription begin`, () =>
      Effect.gen(function*() {
        const person = new Person()
        person.isSignedIn = true
        const server = yield* ScriptedHttpServer.make<Json>((hit) => {
          if (hit.method === "POST" && !person.allows(hit)) return
          const script = (hit: Exchange): void => {
            if (hit.json.method !== "subscriptions/listen") return hit.respondResult({})
            const meta = { "io.modelcontextprotocol/subscriptionId": hit.json.id }
            const params = { _meta: meta, notifications: hit.json.params.notifications }
            hit.openStream(ScriptedHttpServer.event({
              jsonrpc: "2.0",
              method: "notifications/subscriptions/acknowledged",
              params
            }))
          }
          anyRevision(script, { standaloneStream: (hit) => hit.openStream(": open\n\n") })(hit)
        })
        const client = yield* open(server.url, person, { revisions: [revision] })
        yield* person.expire
        const first = yield* Effect.forkChild(
          Stream.runHead(client.changes({ uris: ["tea://menu"] }, { timeout: "5 seconds" }))
        )
        yield* until(() => person.asked === 1)
        yield* threeMinutes
        yield* person.finish
        assert.deepInclude(yield* Fiber.join(first), { _tag: "Some" })
        assert.strictEqual(person.asked, 1)
      }))
  }

  it.effect("lets the polls of a task go on", () =>
    Effect.gen(function*() {
      const person = new Person()
      person.isSignedIn = true
      let polls = 0
      const task = (status: string, more: Json = {}) => ({
        taskId: "t1",
        status,
        ttlMs: null,
        pollIntervalMs: 1_000,
        createdAt: "2026-11-01T10:30:00Z",
        lastUpdatedAt: "2026-11-01T10:30:00Z",
        ...more
      })
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (!person.allows(hit)) return
        if (hit.json?.method === "server/discover") {
          return hit.respondResult({
            resultType: "complete",
            supportedVersions: ["2026-07-28"],
            capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
            ttlMs: 0,
            cacheScope: "private"
          })
        }
        if (hit.json?.method === "tools/call") return hit.respondResult(task("working", { resultType: "task" }))
        if (hit.json?.method !== "tasks/get") return anyRevision((hit) => hit.respond(404))(hit)
        polls++
        if (polls === 1) {
          person.isSignedIn = false
          return hit.respondResult({ ...task("working"), resultType: "complete" })
        }
        hit.respondResult({ ...task("completed", { result: called }), resultType: "complete" })
      })
      const client = yield* open(server.url, person, { revisions: ["2026-07-28"] })
      const calling = yield* Effect.forkChild(client.callTool("t", {}))
      yield* advanceUntil("100 millis", () => person.asked === 1)
      yield* threeMinutes
      yield* person.finish
      yield* advanceUntil("100 millis", () => calling.pollUnsafe() !== undefined)
      assert.deepStrictEqual((yield* Fiber.join(calling)).content, called.content as any)
      assert.strictEqual(person.asked, 1)
    }))

  it.effect("may happen in `headers` as well", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>(anyRevision((hit) => hit.respondResult(called)))
      const credentials: Credentials.Credentials["Service"] = {
        headers: () => Effect.as(Effect.sleep("3 minutes"), {}),
        refused: () => Effect.succeed(false)
      }
      const opening = yield* Effect.forkChild(
        Client.make(Http.transport({ url: server.url, credentials, shutdownTimeout: 0 }), {
          limits,
          probeTimeout: "1 second"
        })
      )
      yield* settle
      yield* threeMinutes
      assert.strictEqual((yield* Fiber.join(opening)).revision, "2026-07-28")
      assert.lengthOf(server.exchanges, 1)
    }))

  it.effect("does not end a connection whose heartbeat was refused", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>(person.guard(anyRevision((hit) => hit.respondResult(called))))
      person.isSignedIn = true
      const client = yield* open(server.url, person, {
        revisions: ["2026-07-28"],
        heartbeat: { interval: "10 seconds", timeout: "1 second" },
        reconnect: false
      })
      yield* person.expire
      yield* TestClock.adjust("10 seconds")
      yield* until(() => person.asked === 1)
      yield* threeMinutes
      yield* person.finish
      yield* settle
      assert.deepStrictEqual((yield* client.callTool("t", {})).content, called.content as any)
    }))

  it.effect("does not extend a call: its timeout goes on after the sign-in", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>(person.guard(anyRevision(() => {})))
      person.isSignedIn = true
      const client = yield* open(server.url, person, { revisions: ["2026-07-28"] })
      yield* person.expire
      const calling = yield* Effect.forkChild(client.callTool("t", {}, { timeout: "5 seconds" }))
      yield* until(() => person.asked === 1)
      yield* threeMinutes
      yield* person.finish
      yield* until(() => server.exchanges.filter(({ json }) => json?.method === "tools/call").length === 2)
      yield* TestClock.adjust("4900 millis")
      yield* settle
      assert.strictEqual(calling.pollUnsafe(), undefined)
      yield* TestClock.adjust("200 millis")
      const error = yield* failure(calling)
      assert.deepInclude(error.reason, { _tag: "Timeout" })
    }))

  it.effect("credentialsTimeout: ends a sign-in after 15 minutes", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>(person.guard(() => {}))
      const opening = yield* Effect.forkChild(open(server.url, person))
      yield* until(() => person.asked === 1)
      yield* TestClock.adjust(899_999)
      yield* settle
      assert.strictEqual(opening.pollUnsafe(), undefined)
      yield* TestClock.adjust(1)
      const error = yield* failure(opening)
      assert.strictEqual(error.reason._tag, "Unauthorized")
      assert.include(String((error.cause as Error).message), "within 900000 ms")
      assert.strictEqual(person.interrupted, 1)
    }))

  it.effect("credentialsTimeout: bounds headers that are never returned", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const credentials = { headers: () => Effect.never, refused: () => Effect.succeed(false) }
      const opening = yield* Effect.forkChild(
        Client.make(Http.transport({ url: server.url, credentials, shutdownTimeout: 0 }), { limits })
      )
      yield* settle
      yield* TestClock.adjust("14 minutes")
      yield* settle
      assert.strictEqual(opening.pollUnsafe(), undefined)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* failure(opening)).reason._tag, "HttpError")
      assert.lengthOf(server.exchanges, 0)
    }))
})

describe("one sign-in", () => {
  const started = (person: Person, options: Options = { revisions: ["2026-07-28"] }) =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>(person.guard(anyRevision((hit) => hit.respondResult(called))))
      person.isSignedIn = true
      const client = yield* open(server.url, person, options)
      yield* person.expire
      return { client, server }
    })

  it.effect("goes on when the call that began it is cancelled, and serves the next call", () =>
    Effect.gen(function*() {
      const person = new Person()
      const { client } = yield* started(person)
      const first = yield* Effect.forkChild(client.callTool("t", {}))
      yield* until(() => person.asked === 1)
      const second = yield* Effect.forkChild(client.callTool("t", {}))
      yield* settle
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(second)
      yield* settle
      assert.strictEqual(person.interrupted, 0)
      const third = yield* Effect.forkChild(client.callTool("t", {}))
      yield* settle
      yield* person.finish
      assert.deepStrictEqual((yield* Fiber.join(third)).content, called.content as any)
      assert.strictEqual(person.asked, 1)
    }))

  it.effect("serves several calls that are refused at once", () =>
    Effect.gen(function*() {
      const person = new Person()
      const { client, server } = yield* started(person)
      const calls = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 20 }, () => client.callTool("t", {})), { concurrency: "unbounded" })
      )
      yield* until(() => server.exchanges.length === 21)
      yield* settle
      yield* person.finish
      assert.lengthOf(yield* Fiber.join(calls), 20)
      assert.strictEqual(person.asked, 1)
    }))

  it.effect("that fails fails all of them, and nobody is asked again for them", () =>
    Effect.gen(function*() {
      const person = new Person()
      const { client, server } = yield* started(person)
      const calls = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 20 }, () => Effect.flip(client.callTool("t", {}))), {
          concurrency: "unbounded"
        })
      )
      yield* until(() => server.exchanges.length === 21)
      yield* settle
      yield* person.fail(new LoginFailed())
      for (const error of yield* Fiber.join(calls)) {
        assert.deepInclude(error.reason, { _tag: "Unauthorized", status: 401 })
        assert.instanceOf(error.cause, LoginFailed)
        assert.notInclude(error.message, "login.example")
      }
      assert.strictEqual(person.asked, 1)
    }))

  it.effect("serves all clients with the same credentials and server, and ends when the last of them is closed", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>(person.guard(anyRevision((hit) => hit.respondResult(called))))
      const one = yield* Scope.make()
      const other = yield* Scope.make()
      const opening = yield* Effect.forkChild(Scope.provide(open(server.url, person), one))
      yield* until(() => person.asked === 1)
      const opening2 = yield* Effect.forkChild(Scope.provide(open(server.url, person), other))
      yield* settle
      yield* Fiber.interrupt(opening)
      yield* settle
      assert.deepStrictEqual([person.asked, person.interrupted], [1, 0])
      yield* Fiber.interrupt(opening2)
      yield* until(() => person.interrupted === 1)
      yield* Scope.close(one, Exit.void)
      yield* Scope.close(other, Exit.void)
    }))

  it.effect("is not begun to delete a session", () =>
    Effect.gen(function*() {
      const person = new Person()
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (person.allows(hit)) ScriptedHttpServer.session<Json>(() => {})(hit)
      })
      person.isSignedIn = true
      yield* Effect.scoped(Effect.gen(function*() {
        yield* open(server.url, person, { revisions: ["2025-11-25"] }, {
          shutdownTimeout: "1 second",
          standaloneStream: false
        })
        yield* until(() => server.exchanges.length === 2)
        yield* settle
        yield* person.expire
      }))
      assert.strictEqual(server.byMethod("DELETE").length, 1)
      assert.strictEqual(person.asked, 0)
    }))
})

describe("a failure of `refused`", () => {
  const refusing = (error: unknown): Credentials.Credentials["Service"] => ({
    headers: () => Effect.succeed({}),
    refused: () => Effect.fail(error)
  })
  const denied = (hit: Exchange) => hit.respond(401, "", { "www-authenticate": "Bearer" })

  for (const revision of revisions) {
    it.effect(`${revision} · is the cause of Unauthorized, in the handshake and in the status of a pool`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>(denied)
        const failed = new LoginFailed()
        const transport = Http.transport({ url: server.url, credentials: refusing(failed), shutdownTimeout: 0 })
        const error = yield* Effect.flip(Client.make(transport, { revisions: [revision] }))
        assert.deepInclude(error.reason, { _tag: "Unauthorized", status: 401, cause: failed })
        assert.strictEqual(error.cause, failed)
        const pool = yield* ClientPool.make({ tea: { transport, options: { revisions: [revision] } } })
        yield* Effect.flip(pool.client("tea"))
        const [{ state }] = pool.entries as [ClientPool.Entry]
        assert.strictEqual(state._tag === "Broken" && state.error.cause, failed)
      }))
  }

  it.effect("is the cause of Unauthorized when a stored profile names HTTP+SSE", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>(denied)
      const failed = new LoginFailed()
      const transport = Http.transport({ url: server.url, credentials: refusing(failed), shutdownTimeout: 0 })
      const error = yield* Effect.flip(Effect.scoped(transport.connectWith!("sse")))
      assert.deepInclude(error.reason, { _tag: "MessageRejected", status: 401, cause: failed })
    }))

  it.effect("is the cause of Unauthorized when a broken stream of a call is resumed", () =>
    Effect.gen(function*() {
      const failed = new LoginFailed()
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (hit.method === "GET" && hit.headers["last-event-id"] !== undefined) return denied(hit)
        anyRevision((hit) => hit.openStream("id: 1\nretry: 100\ndata:\n\n").end())(hit)
      })
      const client = yield* Client.make(
        Http.transport({ url: server.url, credentials: refusing(failed), shutdownTimeout: 0 }),
        { revisions: ["2025-11-25"] }
      )
      const calling = yield* Effect.forkChild(client.callTool("t", {}))
      yield* until(() => server.exchanges.some(({ json }) => json?.method === "tools/call"))
      yield* settle
      yield* TestClock.adjust("100 millis")
      const error = yield* failure(calling)
      assert.deepInclude(error.reason, { _tag: "Unauthorized", status: 401, cause: failed })
      // The server has the request.
      assert.strictEqual(error.undelivered, undefined)
    }))

  it.effect("is the cause of Unauthorized of a 403 whose body is a JSON-RPC error, too", () =>
    Effect.gen(function*() {
      const failed = new LoginFailed()
      const server = yield* ScriptedHttpServer.make<Json>(anyRevision((hit) =>
        hit.respondJson({ jsonrpc: "2.0", id: hit.json.id, error: { code: -32001, message: "scope" } }, {
          "www-authenticate": "Bearer error=\"insufficient_scope\""
        }, 403)
      ))
      const client = yield* Client.make(
        Http.transport({ url: server.url, credentials: refusing(failed), shutdownTimeout: 0 })
      )
      const error = yield* Effect.flip(client.callTool("t", {}))
      assert.deepInclude(error.reason, { _tag: "Unauthorized", status: 403, cause: failed })
    }))
})

describe("the credentials", () => {
  it.effect("receive each response, with its headers", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit, count) =>
        count === 1
          ? hit.respond(401, "", { "dpop-nonce": "n1" })
          : anyRevision((hit) => hit.respondResult(called))(
            Object.assign(hit, hit.response.setHeader("dpop-nonce", "n2"))
          )
      )
      const seen: Array<readonly [number, string | undefined, string]> = []
      const credentials: Credentials.Credentials["Service"] = {
        headers: () => Effect.succeed({}),
        refused: ({ header }) => Effect.succeed(header("DPoP-Nonce") === "n1"),
        replied: ({ header, status, url }) => void seen.push([status, header("DPoP-Nonce"), url.href])
      }
      yield* Client.make(Http.transport({ url: server.url, credentials, shutdownTimeout: 0 }))
      assert.deepStrictEqual(seen, [[401, "n1", server.url.href], [200, "n2", server.url.href]])
    }))

  it.effect("are not asked for another origin, and never sent there by a redirect", () =>
    Effect.gen(function*() {
      const other = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respond(307, "", { location: other.url.href }))
      const asked: Array<string> = []
      const credentials: Credentials.Credentials["Service"] = {
        headers: ({ url }) => Effect.sync(() => (asked.push(url.href), { authorization: "Bearer secret" })),
        refused: () => Effect.succeed(false)
      }
      const error = yield* Effect.flip(
        Client.make(Http.transport({ url: server.url, credentials, shutdownTimeout: 0 }))
      )
      assert.deepInclude(error.reason, { _tag: "HttpError", status: 307 })
      assert.lengthOf(other.exchanges, 0)
      assert.deepStrictEqual(new Set(asked), new Set([server.url.href]))
    }))

  const authorized = { authorization: "Bearer other" }
  it.effect("conflict with a header Authorization of the transport: nothing is sent", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const credentials = Credentials.bearer(Redacted.make("secret"))
      const make = (options: Omit<Http.Options, "url">) =>
        Effect.flip(Client.make(Http.transport({ url: server.url, shutdownTimeout: 0, ...options })))
      const errors = [
        yield* make({ credentials, headers: { AUTHORIZATION: "Bearer other" } }),
        yield* make({ credentials, headers: Effect.succeed(authorized) }),
        yield* Effect.provide(make({ headers: authorized }), Layer.succeed(Credentials.Credentials, credentials))
      ]
      assert.deepStrictEqual(errors.map(({ reason }) => reason._tag), [
        "ConnectionFailed",
        "HttpError",
        "ConnectionFailed"
      ])
      for (const { message } of errors) {
        assert.include(message, "Authorization")
        assert.notMatch(message, /secret|other/)
      }
      assert.lengthOf(server.exchanges, 0)
    }))

  for (const revision of revisions) {
    it.effect(`${revision} · declare their extensions in the capabilities of the client`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>(
          anyRevision((hit) => hit.respondResult(called), { revision })
        )
        const extension = "io.modelcontextprotocol/oauth-client-credentials"
        const credentials: Credentials.Credentials["Service"] = {
          ...Credentials.bearer(Redacted.make("secret")),
          extensions: { [extension]: {} }
        }
        const client = yield* Client.make(Http.transport({ url: server.url, credentials, shutdownTimeout: 0 }), {
          revisions: [revision]
        })
        yield* client.callTool("t", {})
        const declared = server.exchanges.flatMap(({ json }) => {
          const capabilities = json?.params?.capabilities ??
            json?.params?._meta?.["io.modelcontextprotocol/clientCapabilities"]
          return capabilities === undefined ? [] : [Object.keys(capabilities.extensions ?? {}).includes(extension)]
        })
        assert.deepStrictEqual(declared, revision === "2026-07-28" ? [true, true] : [true])
      }))
  }
})
