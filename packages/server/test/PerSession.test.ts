/** Values that live as long as a session. */
import { describe, expect, it } from "@effect/vitest"
import type * as McpServer from "@skein/server/McpServer"
import * as PerSession from "@skein/server/PerSession"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { adapters } from "./http/adapters.ts"
import { until } from "./http/fixtures.ts"
import * as http from "./http/kit.ts"
import * as kit from "./kit.ts"
import * as support from "./middleware/support.ts"

/** Numbers that are acquired and released, and a tool `number` that returns that of the session. */
const numbers = (options: PerSession.Options = {}) => {
  const log: Array<string> = []
  let count = 0
  const number = PerSession.make("number", {
    ...options,
    acquire: Effect.acquireRelease(
      Effect.sync(() => {
        log.push(`+${++count}`)
        return count
      }),
      (n) => Effect.sync(() => void log.push(`-${n}`))
    )
  })
  const tool = Tool.layer(Tool.make("number"), () => number.use((n) => Effect.succeed(String(n))))
  return { log, number, tool }
}

const call = (client: kit.Client, name = "number"): Effect.Effect<string> =>
  Effect.map(client.call(name), (result) => result.content[0].text)

/** Connects a client in a scope, whose end disconnects it. */
const connecting = (
  server: McpServer.McpServer["Service"],
  revision: Parameters<typeof support.connect>[1],
  id?: string
) => {
  const scope = Scope.makeUnsafe()
  return Effect.map(
    Scope.provide(support.connect(server, revision, id === undefined ? {} : support.as(id)), scope),
    (client) => ({ client, disconnect: Scope.close(scope, Exit.void) })
  )
}

for (const revision of support.eras) {
  describe(`${revision} · a value`, () => {
    it.effect("is acquired at its first use, shared, and released when its session or connection ends", () =>
      Effect.gen(function*() {
        const { log, tool } = numbers()
        const server = yield* support.build(kit.server(tool))
        const one = yield* connecting(server, revision)
        const other = yield* connecting(server, revision)
        expect(log).toEqual([])
        const both = yield* Effect.all([call(one.client), call(one.client)], { concurrency: 2 })
        expect([...both, yield* call(one.client)]).toEqual(["1", "1", "1"])
        expect(yield* call(other.client)).toBe("2")
        yield* one.disconnect
        expect(log).toEqual(["+1", "+2", "-1"])
        expect(yield* call(other.client)).toBe("2")
        yield* other.disconnect
        expect(log).toEqual(["+1", "+2", "-1", "-2"])
      }))

    it.effect("is released when the server stops", () =>
      Effect.gen(function*() {
        const { log, tool } = numbers()
        yield* Effect.scoped(Effect.gen(function*() {
          const server = yield* support.build(kit.server(tool))
          expect(yield* call(yield* support.connect(server, revision))).toBe("1")
          expect(log).toEqual(["+1"])
        }))
        expect(log).toEqual(["+1", "-1"])
      }))

    it.effect("is not released before the handler that uses it has ended", () =>
      Effect.gen(function*() {
        const { log, number } = numbers()
        const using = Deferred.makeUnsafe<void>()
        const slow = Tool.layer(Tool.make("slow"), () =>
          number.use(() =>
            Effect.andThen(Deferred.succeed(using, undefined), Effect.never).pipe(
              Effect.onInterrupt(() =>
                Effect.andThen(Effect.yieldNow, Effect.sync(() => void log.push("stopped")))
              )
            )
          ))
        const { client, disconnect } = yield* connecting(yield* support.build(kit.server(slow)), revision)
        client.send("tools/call", { name: "slow" })
        yield* Deferred.await(using)
        yield* disconnect
        expect(log).toEqual(["+1", "stopped", "-1"])
      }))

    it.effect("is acquired again after a failure, whose error the handler gets", () =>
      Effect.gen(function*() {
        let attempts = 0
        const number = PerSession.make("number", {
          acquire: Effect.suspend(() =>
            ++attempts < 3
              ? Effect.fail({ _tag: "NoNumber", message: `attempt ${attempts}` } as const)
              : Effect.succeed(attempts)
          )
        })
        const tool = Tool.layer(
          Tool.make("number"),
          () =>
            number.use((n) => Effect.succeed(String(n))).pipe(
              Effect.catchTag("NoNumber", ({ message }) => Effect.succeed(message))
            )
        )
        const client = yield* support.connect(yield* support.build(kit.server(tool)), revision)
        const texts = [yield* call(client), yield* call(client), yield* call(client), yield* call(client)]
        expect(texts).toEqual(["attempt 1", "attempt 2", "3", "3"])
      }))

    it.effect("is still acquired for other requests when one that waits is cancelled, and given up when all are", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const ready = Deferred.makeUnsafe<void>()
        const value = PerSession.make("value", {
          acquire: Effect.as(Deferred.await(ready), "ready").pipe(
            Effect.onInterrupt(() => Effect.sync(() => void log.push("given up")))
          )
        })
        const tool = Tool.layer(Tool.make("value"), () => value.use(Effect.succeed))
        const client = yield* support.connect(yield* support.build(kit.server(tool)), revision)
        const cancel = (requestId: kit.Json) => client.notify("notifications/cancelled", { requestId })
        const [first, second] = [0, 1].map(() => client.send("tools/call", { name: "value" }))
        yield* Effect.yieldNow
        cancel(first)
        cancel(second)
        yield* Effect.yieldNow
        expect(log).toEqual(["given up"])
        const [third, fourth] = [0, 1].map(() => client.send("tools/call", { name: "value" }))
        yield* Effect.yieldNow
        cancel(third)
        yield* Deferred.succeed(ready, undefined)
        expect((yield* client.answer(fourth!)).result.content).toEqual([{ type: "text", text: "ready" }])
        expect(log).toEqual(["given up"])
      }))

    it.effect("has the services of its definition, and a scope for handlers that use it with get", () =>
      Effect.gen(function*() {
        const { log, number } = numbers()
        const tool = Tool.layer(Tool.make("number"), () => Effect.scoped(Effect.map(number.get, String)))
        const client = yield* support.connect(yield* support.build(kit.server(tool)), revision)
        expect([yield* call(client), yield* call(client), log]).toEqual(["1", "1", ["+1"]])
      }))

    it.effect("is one of an async handler until it ends, with functions that return promises", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const browser = PerSession.async("browser", {
          acquire: async () => ({ open: (url: string) => `opened ${url}` }),
          release: async () => {
            log.push("closed")
            throw new Error("it hangs")
          }
        })
        const open = Tool.async(Tool.make("open"), async (_, { use }) => {
          const [page, same] = await Promise.all([use(browser), use(browser)])
          return `${page.open("a")} ${page === same}`
        })
        const server = yield* support.build(kit.server(open))
        const { client, disconnect } = yield* connecting(server, revision)
        expect([yield* call(client, "open"), yield* call(client, "open")]).toEqual(["opened a true", "opened a true"])
        expect(log).toEqual([])
        yield* disconnect
        expect(log).toEqual(["closed"])
      }))

    it.effect("that a promise acquires is released although nobody waits for it any more", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        let resolve: ((text: string) => void) | undefined
        const value = PerSession.async("value", {
          acquire: () => new Promise<string>((done) => void (resolve = done)),
          release: (text) => void log.push(`released ${text}`)
        })
        const tool = Tool.async(Tool.make("value"), (_, { use }) => use(value))
        const { client, disconnect } = yield* connecting(yield* support.build(kit.server(tool)), revision)
        client.send("tools/call", { name: "value" })
        yield* Effect.yieldNow
        const disconnecting = yield* Effect.forkChild(disconnect, { startImmediately: true })
        resolve!("late")
        yield* Fiber.join(disconnecting)
        expect(log).toEqual(["released late"])
      }))

    it.effect("counts for its server and its principal, until it is released", () =>
      Effect.gen(function*() {
        const { tool } = numbers({ max: 3, maxPerPrincipal: 2 })
        const server = yield* support.build(kit.server(tool))
        const [first, , third] = [
          yield* connecting(server, revision, "ada"),
          yield* Effect.tap(connecting(server, revision, "ada"), ({ client }) => call(client)),
          yield* connecting(server, revision, "ada")
        ]
        expect(yield* call(first.client)).toBe("2")
        const user = "The user has 2 of number already, which is its maxPerPrincipal"
        expect(yield* call(third.client)).toBe(user)
        const bob = yield* connecting(server, revision, "bob")
        const anonymous = yield* connecting(server, revision)
        expect(yield* call(bob.client)).toBe("3")
        expect(yield* call(anonymous.client)).toBe("There are 3 of number already, which is its max")
        yield* bob.disconnect
        expect(yield* call(third.client)).toBe(user)
        expect(yield* call(anonymous.client)).toBe("4")
        yield* first.disconnect
        expect(yield* call(third.client)).toBe("5")
      }))

    it.effect("of another definition or server is another value", () =>
      Effect.gen(function*() {
        const { tool } = numbers()
        const clients = [
          yield* support.connect(yield* support.build(kit.server(tool)), revision),
          yield* support.connect(yield* support.build(kit.server(Layer.fresh(tool))), revision),
          yield* support.connect(yield* support.build(kit.server(numbers().tool)), revision)
        ]
        expect(yield* Effect.forEach(clients, (client) => call(client))).toEqual(["1", "2", "1"])
      }))
  })
}

describe("over HTTP", () => {
  const initialize = { jsonrpc: "2.0", id: 0, method: "initialize", params: kit.hello("2025-11-25") }
  const calling = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "number", arguments: {} } }
  const modern = (user?: string) =>
    http.modern("tools/call", { name: "number", arguments: {} }, {
      headers: user === undefined ? {} : { "x-user": user }
    })
  const textOf = ({ json }: http.Reply): string => json.result.content[0].text

  for (const adapter of adapters) {
    it.live(`a value is released when the client deletes its session · ${adapter.name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { log, tool } = numbers()
        const at = yield* adapter.serve(kit.server(tool))
        const open = Effect.map(http.post(at, initialize), ({ headers }) => ({
          "mcp-session-id": String(headers["mcp-session-id"])
        }))
        const [one, other] = [yield* open, yield* open]
        expect(textOf(yield* http.post(at, calling, one))).toBe("1")
        expect(textOf(yield* http.post(at, calling, other))).toBe("2")
        expect(textOf(yield* http.post(at, calling, one))).toBe("1")
        expect((yield* http.send(at, { method: "DELETE", headers: one })).status).toBeLessThan(300)
        yield* until(() => log.includes("-1"))
        expect(log).toEqual(["+1", "+2", "-1"])
      })))
  }

  it.live("a stateless request has no value, unless it has one of its user", () =>
    Effect.scoped(Effect.gen(function*() {
      const [node] = adapters
      const strict = yield* node!.serve(kit.server(numbers().tool))
      expect(textOf(yield* http.send(strict, modern("ada")))).toBe(
        "number belongs to a session, and the request has none"
      )
      const { log, tool } = numbers({ stateless: "user", idleTimeout: "500 millis" })
      const at = yield* node!.serve(kit.server(tool))
      const users = ["ada", "bob", "ada"]
      expect(yield* Effect.forEach(users, (user) => Effect.map(http.send(at, modern(user)), textOf)))
        .toEqual(["1", "2", "1"])
      expect(textOf(yield* http.send(at, modern()))).toBe("number belongs to a user, and the caller is anonymous")
      yield* until(() => log.length === 4)
      expect(log.toSorted()).toEqual(["+1", "+2", "-1", "-2"])
    })))
})

describe("the value of a user", () => {
  it.effect("is released after idleTimeout without a use, by default 5 minutes", () =>
    Effect.gen(function*() {
      const { log, tool } = numbers({ stateless: "user" })
      const context = yield* Effect.orDie(Layer.build(kit.server(tool)))
      const handler = yield* Effect.provideContext(WebHttp.handler({ principal: () => ({ id: "ada" }) }), context)
      const { body, headers } = http.modern("tools/call", { name: "number", arguments: {} })
      const request = () =>
        new Request("http://localhost/mcp", {
          method: "POST",
          headers: headers as Record<string, string>,
          body: JSON.stringify(body)
        })
      const use = Effect.map(
        Effect.promise(async () => (await handler(request())).json() as Promise<kit.Json>),
        ({ result }) => result.content[0].text
      )
      expect(yield* use).toBe("1")
      yield* TestClock.adjust("4 minutes")
      expect(yield* use).toBe("1")
      yield* TestClock.adjust("299 seconds")
      expect(log).toEqual(["+1"])
      yield* TestClock.adjust("1 second")
      expect(log).toEqual(["+1", "-1"])
      expect(yield* use).toBe("2")
    }))
})
