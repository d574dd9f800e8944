/** Programs that attack the sandbox: each one ends with its error, and the server goes on. */
import { describe, expect, it } from "@effect/vitest"
import * as CodeMode from "@skein/code-mode/CodeMode"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as server from "../../server/test/kit.ts"
import { failing, office, program } from "./kit.ts"

const computing = /^The program computed for more than 300 ms \(computingTimeout\)/
const memory = /^The program needs more than 16777216 bytes of memory \(maxMemoryBytes\)/
const stack = /^The program needs more than 524288 bytes of stack/

const hostile: ReadonlyArray<readonly [title: string, code: string, error: RegExp]> = [
  ["an infinite loop", "for (;;);", computing],
  ["an infinite loop after a call", "await tools.greet({ name: \"a\" })\nfor (;;);", computing],
  ["an endless chain of promises", "for (;;) await null", computing],
  [
    "a flood of promises",
    "const f = () => Promise.all([f(), f()]); const g = async () => { await 0; g(); g() }; await new Promise(g)",
    /(computingTimeout|maxMemoryBytes)/
  ],
  ["an infinite loop that catches everything", "for (;;) try { for (;;); } catch {}", computing],
  ["an infinite loop in a finally", "try { for (;;); } finally { for (;;); }", computing],
  ["an infinite loop in toJSON of the result", "return { toJSON() { for (;;); } }", computing],
  ["an infinite loop in a getter of the result", "return { get a() { for (;;); } }", computing],
  [
    "an infinite loop in toString of an error",
    "const e = new Error(); e.toString = () => { for (;;); }; throw e",
    computing
  ],
  ["a proxy with endless keys as the result", "return new Proxy({}, { ownKeys: () => { for (;;); } })", computing],
  ["a slow regular expression", "return /(a+)+b/.test(\"a\".repeat(40))", computing],
  ["a native loop", "return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", computing],
  ["a slow search in a string", "return \"a\".repeat(4e6).indexOf(\"a\".repeat(2e6) + \"b\")", computing],
  ["a loop of large copies", "const a = new Uint8Array(6e6); for (;;) a.slice()", computing],
  ["infinite recursion", "const f = () => f() + 1; return f()", stack],
  [
    "a deeply nested result",
    "let o = {}; for (let i = 0; i < 30000; i++) o = { o }; return o",
    /(maxStackBytes|computingTimeout)/
  ],
  ["deeply nested JSON", "return JSON.parse(\"[\".repeat(1e6))", stack],
  ["a huge string", "return \"x\".repeat(2 ** 28)", memory],
  ["a string that doubles", "let s = \"x\"; for (;;) s += s", /maxMemoryBytes|string too long/],
  ["a huge buffer", "return new ArrayBuffer(2 ** 30)", memory],
  ["a memory bomb", "const a = []; for (;;) a.push(\"x\".repeat(1e6) + a.length)", /(computingTimeout|maxMemoryBytes)/],
  [
    "a promise that never settles",
    "await new Promise(() => {})",
    /^The program waits for a promise that nothing settles/
  ],
  ["a thenable that never settles", "return { then() {} }", /^The program waits for a promise that nothing settles/],
  ["a cyclic result", "const a = {}; a.a = a; return a", /^The result of the program has no JSON: TypeError/],
  ["a bigint as the result", "return 1n", /^The result of the program has no JSON: TypeError/],
  [
    "a result whose toJSON throws a non-error",
    "return { toJSON() { throw 1 } }",
    /^The result of the program has no JSON: threw 1/
  ],
  ["undefined as an error", "throw undefined", /^threw undefined$/],
  ["null as an error", "throw null", /^threw null$/],
  ["an error whose members throw", "throw new Proxy(new Error(), { get() { throw 1 } })", /^threw/],
  ["an object without text as an error", "throw Object.create(null)", /^threw/],
  ["a symbol as an error", "throw Symbol(\"s\")", /^threw Symbol\(s\)$/],
  ["an import", "return import(\"node:fs\")", /^ReferenceError|could not load module/],
  ["a require", "return require(\"node:fs\")", /'require' is not defined/],
  ["the process", "return process.env", /'process' is not defined/],
  ["a timer", "setTimeout(() => {}, 1)", /'setTimeout' is not defined/],
  ["a fetch", "return fetch(\"http://localhost\")", /'fetch' is not defined/],
  ["a call with a cyclic argument", "const a = {}; a.a = a; await tools.greet(a)", /circular/],
  ["a call with a list", "await tools.greet([1])", /the arguments of greet must be an object/],
  [
    "a call of a name that is not text",
    "await callTool({ toString: () => \"greet\" })",
    /the name of a tool must be a string/
  ],
  ["a program that ends the function around it", "}); for (;;); (async () => {", computing],
  [
    "deeply nested arguments",
    "let o = {}; for (let i = 0; i < 8000; i++) o = { o }; await tools.greet(o)",
    /a value that is nested too deeply \(line 1|(maxStackBytes|computingTimeout)/
  ]
]

describe("the sandbox", () => {
  for (const [title, code, error] of hostile) {
    it.live(`ends a program with ${title}`, () =>
      Effect.gen(function*() {
        const client = yield* server.client(
          office({ limits: { computingTimeout: "300 millis", maxMemoryBytes: 16 * 1024 * 1024 } })
        )
        expect(yield* failing(client, code)).toMatch(error)
        expect(yield* program(client, "return tools.greet({ name: \"Ada\" })")).toBe("Hello Ada")
      }))
  }

  it.live("gives a program no object of the server", () =>
    Effect.gen(function*() {
      const client = yield* server.client(office())
      const names = yield* program(client, "return Object.getOwnPropertyNames(globalThis).sort()")
      const own = (names as ReadonlyArray<string>).filter((name) => !(name in globalThis))
      expect(own).toEqual(["InternalError", "callTool", "tools"])
      // Only what QuickJS has itself: no Node, and no web.
      for (
        const name of ["process", "require", "Buffer", "fetch", "setTimeout", "WebAssembly", "Worker", "std", "os"]
      ) {
        expect(names).not.toContain(name)
      }
      expect(yield* program(client, "return callTool.constructor(\"return typeof process\")()")).toBe("undefined")
    }))

  it.live("harms only itself with replaced built-in functions", () =>
    Effect.gen(function*() {
      const client = yield* server.client(office())
      const code = `
        JSON.stringify = () => "{}"
        JSON.parse = () => "forged"
        Map.prototype.get = () => undefined
        Map.prototype.delete = () => { throw 1 }
        return tools.greet({ name: "Ada" })`
      expect(yield* program(client, code)).toBe("Hello Ada")
      expect(
        yield* failing(client, "Array = Object = Error = String = undefined; await tools.greet({ name: \"Ada\" })")
      )
        .toMatch(/./)
      expect(yield* failing(client, "Promise.prototype.then = () => {}; return 1")).toMatch(/never|nothing settles/)
    }))

  it.live("refuses a result of a tool that the program has no memory or stack for, in the program", () =>
    Effect.gen(function*() {
      const deep = (depth: number): unknown => {
        let value: unknown = 1
        for (let i = 0; i < depth; i++) value = { value }
        return value
      }
      const results: { readonly [kind: string]: () => unknown } = {
        large: () => "x".repeat(8e6),
        wide: () => Array.from({ length: 500_000 }, () => ({})),
        deep: () => deep(100_000)
      }
      const get = Tool.layer(
        Tool.make("get", { input: { kind: Schema.String }, output: { value: Schema.Unknown } }),
        ({ kind }) => Effect.succeed({ value: results[kind]!() })
      )
      const client = yield* server.client(
        server.server(CodeMode.layer({ limits: { maxMemoryBytes: 4 * 1024 * 1024 } }, get)) as server.Server
      )
      for (const kind of Object.keys(results)) {
        const { content, isError } = yield* client.call("execute", { code: `return tools.get({ kind: "${kind}" })` })
        expect([kind, isError, content[0].text])
          .toEqual([kind, true, expect.stringMatching(/maxMemoryBytes|deeply/)])
      }
      expect(yield* program(client, "return 1")).toBe(1)
    }))

  it.live("does not block the server while a program computes", () =>
    Effect.gen(function*() {
      const client = yield* server.client(office({ limits: { computingTimeout: "1 second" } }))
      const running = client.send("tools/call", {
        name: "execute",
        arguments: { code: "for (;;) new Uint8Array(6e6).slice()" }
      })
      let turns = 0
      const timer = setInterval(() => turns++, 10)
      yield* client.answer(running)
      clearInterval(timer)
      expect(turns).toBeGreaterThan(20)
    }))

  it.live("ends the thread of each program, also of those that are cancelled", () =>
    Effect.gen(function*() {
      const threads = () => process.getActiveResourcesInfo().filter((name) => /Worker|MessagePort/.test(name)).length
      const wait = Tool.layer(Tool.make("wait"), () => Effect.never)
      const client = yield* server.client(
        server.server(
          CodeMode.layer({ limits: { computingTimeout: "200 millis", timeout: "1 second" } }, wait)
        ) as server.Server
      )
      const before = threads()
      for (const code of ["return 1", "throw 1", "for (;;);", "await new Promise(() => {})", "await tools.wait()"]) {
        yield* client.call("execute", { code })
        expect(threads()).toBe(before)
      }
      const bytes: Array<number> = []
      let most = 0
      for (let round = 0; round < 5; round++) {
        for (const millis of [0, 1, 5, 20, 40, 60, 80, 100]) {
          const code = millis % 2 === 0 ? "await tools.wait()" : "for (;;);"
          const id = client.send("tools/call", { name: "execute", arguments: { code } })
          yield* Effect.sleep(millis)
          most = Math.max(most, threads())
          client.notify("notifications/cancelled", { requestId: id })
        }
        yield* Effect.repeat(Effect.sleep(20), { until: () => threads() === before })
        globalThis.gc?.()
        bytes.push(process.memoryUsage().rss)
      }
      expect(most).toBeGreaterThan(before)
      // Each thread has more than 5 MB.
      expect(bytes.at(-1)! - bytes[0]!).toBeLessThan(64 * 1024 * 1024)
    }))
})
