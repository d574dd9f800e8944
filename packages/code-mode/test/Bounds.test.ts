import { describe, expect, it } from "@effect/vitest"
import * as CodeMode from "@skein/code-mode/CodeMode"
import { ProgramError, Thrown } from "@skein/code-mode/ProgramError"
import * as Sandbox from "@skein/code-mode/Sandbox"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as server from "../../server/test/kit.ts"
import { failing, failureOf, greet, office, program, resultOf, withFixed } from "./kit.ts"

const caught = (call: string) => `try { await ${call} } catch (error) { return error.message }`

describe("the bounds of a program", () => {
  it.live("maxCodeChars", () =>
    Effect.gen(function*() {
      const client = yield* server.client(withFixed({ maxCodeChars: 10 }))
      expect(yield* program(client, "return   1")).toBe(1)
      expect(yield* failing(client, "return    1")).toBe("The program exceeds 10 characters")
    }))

  it.live("maxResultBytes, in UTF-8", () =>
    Effect.gen(function*() {
      const client = yield* server.client(office({ limits: { maxResultBytes: 10 } }))
      expect(yield* program(client, "return \"12345678\"")).toBe("12345678")
      expect(yield* program(client, "return \"éééé\"")).toBe("éééé")
      const message = "The result exceeds 10 bytes of JSON (maxResultBytes). Return a smaller part of it"
      expect(yield* failing(client, "return \"123456789\"")).toBe(message)
      expect(yield* failing(client, "return \"ééééé\"")).toBe(message)
    }))

  it.live("maxLogBytes: further lines are dropped, and the program goes on", () =>
    Effect.gen(function*() {
      const client = yield* server.client(withFixed({ maxLogBytes: 12 }))
      const code = (line: string) => `for (let i = 0; i < 5; i++) console.log(${line}); return 1`
      const { structuredContent: short } = yield* client.call("execute", { code: code("\"abc\"") })
      expect(short).toEqual({ result: 1, log: ["abc", "abc", "abc", "… (further lines exceed maxLogBytes)"] })
      const { structuredContent: long } = yield* client.call("execute", { code: code("\"x\".repeat(1e6)") })
      expect(long).toEqual({ result: 1, log: ["x".repeat(12), "… (further lines exceed maxLogBytes)"] })
    }))

  it.live("maxCalls: a further call throws", () =>
    Effect.gen(function*() {
      const client = yield* server.client(office({ limits: { maxCalls: 2 } }))
      const code =
        "let n = 0; try { for (;;) { await tools.greet({ name: \"a\" }); n++ } } catch (e) { return [n, e.message] }"
      expect(yield* program(client, code)).toEqual([2, "the program may call tools 2 times (maxCalls)"])
    }))

  it.live("maxArgumentBytes: a call with more throws", () =>
    Effect.gen(function*() {
      const client = yield* server.client(withFixed({ maxArgumentBytes: 20 }))
      expect(yield* program(client, caught("tools.greet({ name: \"x\".repeat(9) })"))).toBeUndefined()
      expect(yield* program(client, caught("tools.greet({ name: \"x\".repeat(10) })")))
        .toBe("the arguments exceed maxArgumentBytes (20)")
    }))

  it.live("runs 8 calls at the same time: further calls wait", () =>
    Effect.gen(function*() {
      let running = 0
      let most = 0
      const full = yield* Deferred.make<void>()
      const slow = Tool.layer(Tool.make("slow"), () =>
        Effect.gen(function*() {
          most = Math.max(most, ++running)
          if (running === 8) yield* Deferred.succeed(full, undefined)
          yield* Deferred.await(full)
          yield* Effect.sleep(5)
          running--
          return "done"
        }))
      const client = yield* server.client(server.server(CodeMode.layer({}, slow)) as server.Server)
      const all = yield* program(
        client,
        "return (await Promise.all(Array.from({ length: 20 }, () => tools.slow()))).length"
      )
      expect([all, most]).toEqual([20, 8])
    }))

  it.live("maxMemoryBytes counts small values with their overhead", () =>
    Effect.gen(function*() {
      const client = yield* server.client(office({ limits: { computingTimeout: "1 minute" } }))
      const objects = yield* program(client, "const a = []; try { for (;;) a.push({}) } catch {} return a.length")
      // An empty object has 70 bytes in 32 MiB, and QuickJS counts 20.
      expect(objects).toBeGreaterThan(200_000)
      expect(objects).toBeLessThan(700_000)
      for (const code of ["let a; for (;;) a = { a }", "const a = new Map(); for (;;) a.set({}, {})"]) {
        expect(yield* failing(client, code)).toContain("33554432 bytes of memory (maxMemoryBytes)")
      }
      expect(yield* failing(client, "throw null")).toBe("threw null")
    }), 120_000)

  it.live("maxMemoryBytes and maxStackBytes", () =>
    Effect.gen(function*() {
      const client = yield* server.client(
        withFixed({ maxStackBytes: 65_536 }, office({ limits: { maxMemoryBytes: 2 * 1024 * 1024 } }))
      )
      expect(yield* failing(client, "return new ArrayBuffer(3e6)")).toContain(
        "2097152 bytes of memory (maxMemoryBytes)"
      )
      expect(yield* failing(client, "const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(3000)"))
        .toContain("65536 bytes of stack")
      const roomy = yield* server.client(office())
      expect(yield* program(roomy, "return new ArrayBuffer(3e6).byteLength")).toBe(3e6)
      expect(yield* program(roomy, "const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(1000)")).toBe(1000)
    }))

  it.live("computingTimeout counts all parts of a program together, and no waiting", () =>
    Effect.gen(function*() {
      const wait = Tool.layer(Tool.make("wait"), () => Effect.as(Effect.sleep(30), "waited"))
      const client = yield* server.client(
        server.server(CodeMode.layer({ limits: { computingTimeout: "400 millis" } }, wait)) as server.Server
      )
      const waits = "for (let i = 0; i < 20; i++) await tools.wait(); return \"done\""
      expect(yield* program(client, waits)).toBe("done")
      const computes = "for (;;) { const end = Date.now() + 20; while (Date.now() < end); await tools.wait() }"
      expect(yield* failing(client, computes)).toContain("The program computed for more than 400 ms (computingTimeout)")
    }))

  it.effect("timeout, which interrupts the calls", () =>
    Effect.gen(function*() {
      const [started, interrupted] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const wait = Tool.layer(Tool.make("wait"), () =>
        Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
          Effect.onInterrupt(() =>
            Deferred.succeed(interrupted, undefined)
          )
        ))
      const client = yield* server.client(
        server.server(CodeMode.layer({ limits: { timeout: "10 seconds" } }, wait)) as server.Server
      )
      const id = client.send("tools/call", {
        name: "execute",
        arguments: { code: "console.log(1); await tools.wait()" }
      })
      yield* Deferred.await(started)
      yield* TestClock.adjust("9 seconds")
      expect(client.answers(id)).toEqual([])
      yield* TestClock.adjust("1 second")
      const { result } = yield* client.answer(id)
      expect(failureOf(result)).toBe("The program took longer than 10s (timeout)\n\nconsole:\n1")
      yield* Deferred.await(interrupted)
    }))

  it.live("maxRuns and maxPerClient: further programs are refused", () =>
    Effect.gen(function*() {
      const release = yield* Deferred.make<void>()
      let started = 0
      const wait = Tool.layer(Tool.make("wait"), () =>
        Effect.suspend(() => {
          started++
          return Effect.as(Deferred.await(release), "released")
        }))
      const built = yield* Layer.build(
        server.server(CodeMode.layer({ limits: { maxRuns: 3, maxPerClient: 2 } }, wait)) as server.Server
      )
      const connect = (id: string) =>
        Effect.provide(
          Effect.flatMap(McpServer.McpServer, (running) => server.linkAs(running, { id })),
          built
        )
      const [ada, bob] = [yield* connect("ada"), yield* connect("bob")]
      const send = (client: server.Client) =>
        client.send("tools/call", { name: "execute", arguments: { code: "return tools.wait()" } })
      const running = [send(ada), send(ada)]
      const refused = failureOf((yield* ada.answer(send(ada))).result)
      expect(refused).toBe("At most 2 programs of one client run at the same time (maxPerClient). Try again later")
      const other = send(bob)
      yield* Effect.repeat(Effect.sleep(10), { until: () => started === 3 })
      expect(yield* failing(bob, "return 1")).toBe("At most 3 programs run at the same time (maxRuns). Try again later")
      yield* Deferred.succeed(release, undefined)
      for (const id of running) expect(resultOf((yield* ada.answer(id)).result)).toBe("released")
      expect(resultOf((yield* bob.answer(other)).result)).toBe("released")
      expect(yield* program(ada, "return 1")).toBe(1)
    }))
})

describe("another sandbox", () => {
  it.live("runs the programs, with the bounds and the tools", () =>
    Effect.gen(function*() {
      let bounds: Sandbox.Bounds | undefined
      const words: Sandbox.Sandbox = {
        run: (program, host) => {
          bounds = program.bounds
          if (program.code === "fail") {
            return Effect.fail(new ProgramError(new Thrown({ message: "It failed", position: undefined })))
          }
          host.log(program.code)
          return Effect.map(Effect.orDie(host.call("greet", { name: program.code })), (value) => JSON.stringify(value))
        }
      }
      const layer = Layer.provide(CodeMode.layer({}, greet), Layer.succeed(Sandbox.Sandbox, words))
      const client = yield* server.client(server.server(layer) as server.Server)
      const { structuredContent } = yield* client.call("execute", { code: "Ada" })
      expect(structuredContent).toEqual({ result: "Hello Ada", log: ["Ada"] })
      expect(yield* failing(client, "fail")).toBe("It failed")
      expect(bounds).toEqual({
        computingTimeoutMillis: 1000,
        maxMemoryBytes: 33_554_432,
        maxStackBytes: 524_288,
        maxCalls: 100,
        maxArgumentBytes: 1_048_576,
        maxResultBytes: 65_536,
        maxLogBytes: 16_384
      })
    }))
})
