import { describe, expect, it } from "@effect/vitest"
import * as CodeMode from "@skein/code-mode/CodeMode"
import * as McpError from "@skein/protocol/McpError"
import * as AuditLog from "@skein/server/AuditLog"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Progress from "@skein/server/Progress"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as server from "../../server/test/kit.ts"
import { eras, failing, failureOf, greet, namesOf, office, orders, program, resultOf } from "./kit.ts"

describe("code mode", () => {
  for (const revision of eras) {
    it.live(`${revision} · lists three tools, and finds and describes the others`, () =>
      Effect.gen(function*() {
        const client = yield* server.client(office({ always: ["greet"] }), revision)
        expect(namesOf(yield* client.result("tools/list"))).toEqual([
          "greet",
          "search_tools",
          "describe_tool",
          "execute"
        ])
        const found = yield* client.call("search_tools", { query: "customer" })
        expect(namesOf(found.structuredContent)).toEqual(["list_orders"])
        expect(found.structuredContent.tools[0].signature).toBe(
          "tools.list_orders(args: { customer: string }): Promise<{ orders: { id: string; total: number }[] }>"
        )
        const described = JSON.parse((yield* client.call("describe_tool", { name: "list_orders" })).content[0].text)
        expect(described.outputSchema.properties.orders.type).toBe("array")
      }))

    it.live(`${revision} · runs a program that calls tools, and returns its result and its log`, () =>
      Effect.gen(function*() {
        const client = yield* server.client(office(), revision)
        const sum = yield* client.call("execute", {
          code: `
            const { orders } = await tools.list_orders({ customer: "ada" })
            console.log("orders:", orders.length, { first: orders[0].id })
            return { total: orders.reduce((sum, order) => sum + order.total, 0) }
          `
        })
        expect(sum.structuredContent).toEqual({ result: { total: 15.5 }, log: ["orders: 2 {\"first\":\"ada-1\"}"] })
        expect(JSON.parse(sum.content[0].text)).toEqual(sum.structuredContent)
        expect(yield* program(client, "return callTool(\"greet\", { name: \"Ada\" })")).toBe("Hello Ada")
        // Structured content that is not an object exists since 2026-07-28, and is text before.
        expect((yield* client.call("execute", { code: "await tools.greet({ name: \"Ada\" })" })).structuredContent)
          .toEqual({})
        const all = "const names = [\"a\", \"b\"]; return Promise.all(names.map((name) => tools.greet({ name })))"
        expect(yield* program(client, all)).toEqual(["Hello a", "Hello b"])
        expect(yield* program(client, "return Math.max(...new Map([[1, 2]]).values())")).toBe(2)
      }))

    it.live(`${revision} · names the line and the column of an error in the code of the model`, () =>
      Effect.gen(function*() {
        const client = yield* server.client(office(), revision)
        const failed = (code: string) => Effect.map(client.call("execute", { code }), failureOf)
        expect(yield* failed("const a = 1\n\nreturn b.c")).toBe("ReferenceError: 'b' is not defined (line 3, column 8)")
        expect(yield* failed("const f = () => {\n  throw new RangeError(\"too far\")\n}\nf()"))
          .toBe("RangeError: too far (line 2, column 23)")
        expect(yield* failed("const {")).toMatch(/^SyntaxError: .+ \(line 1, column \d+\)$/)
        expect(yield* failed("\n  await tools.greet({ name: \"nobody\" })"))
          .toMatch(/^Error: There is nobody \(line 2, column \d+\)$/)
        expect(yield* failed("await tools.greet({ nam: 1 })")).toContain("Invalid arguments for tool greet")
        expect(yield* failed("console.log(1)\nthrow \"stop\"")).toBe("threw stop\n\nconsole:\n1")
        expect(yield* program(client, "try { await tools.greet({ name: \"nobody\" }) } catch (e) { return e.message }"))
          .toBe("There is nobody")
      }))

    it.live(`${revision} · calls tools through middleware, guards and visibility`, () =>
      Effect.gen(function*() {
        const seen: Array<string | undefined> = []
        const closed = Catalog.guarded(
          () => McpError.invalidRequest("Members only"),
          Tool.layer(Tool.make("closed"), () => Effect.succeed("closed"))
        )
        const ghost = Catalog.visibleTo(() => false, Tool.layer(Tool.make("ghost"), () => Effect.succeed("ghost")))
        const outside = Tool.layer(Tool.make("outside"), () => Effect.succeed("outside"))
        const client = yield* server.client(
          server.server(
            AuditLog.layer({ sink: ({ target }) => Effect.sync(() => void seen.push(target)) }),
            Middleware.callTool((call, next) => {
              seen.push(`${call.name}!`)
              return call.name === "refused" ? Effect.fail(McpError.invalidRequest("Not today")) : next()
            }),
            CodeMode.layer(
              { direct: false },
              greet,
              closed,
              ghost,
              Tool.layer(Tool.make("refused"), () => Effect.succeed("refused"))
            ),
            outside
          ) as server.Server,
          revision
        )
        expect(yield* program(client, "return tools.greet({ name: \"Ada\" })")).toBe("Hello Ada")
        expect(seen.filter((each) => each !== undefined).toSorted()).toEqual([
          "execute",
          "execute!",
          "greet",
          "greet!"
        ])
        for (const name of ["closed", "ghost", "outside", "execute", "search_tools", "__proto__", "constructor"]) {
          const error = yield* program(client, `try { await callTool("${name}") } catch (e) { return e.message }`)
          expect(error).toBe(`There is no tool "${name}". Find tools with search_tools`)
        }
        expect(yield* program(client, "try { await tools.refused() } catch (e) { return e.message }")).toBe("Not today")
        expect((yield* client.error("tools/call", { name: "greet", arguments: { name: "a" } })).message)
          .toBe("Unknown tool: greet")
      }))

    it.live(`${revision} · uses the names of a mounted part`, () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const inner = McpServer.layer({ name: "inner", version: "1" }, CodeMode.layer({}, greet, orders))
        const spy = (level: string) =>
          Middleware.callTool((call, next) => {
            seen.push(`${level} ${call.name}`)
            return next()
          })
        const client = yield* server.client(
          server.server(
            spy("server"),
            McpServer.mount("shop", spy("part"), CodeMode.layer({}, greet, orders)),
            McpServer.mount("other", inner)
          ) as server.Server,
          revision
        )
        const code = "return tools.greet({ name: \"Ada\" })"
        expect(resultOf(yield* client.call("shop_execute", { code }))).toBe("Hello Ada")
        expect(resultOf(yield* client.call("other_execute", { code }))).toBe("Hello Ada")
        expect(seen).toEqual([
          "server shop_execute",
          "part execute",
          "server shop_greet",
          "part greet",
          "server other_execute",
          "server other_greet"
        ])
      }))

    it.live(`${revision} · interrupts the tools of a program that is cancelled, and of one that ends`, () =>
      Effect.gen(function*() {
        const starts = yield* Queue.unbounded<void>()
        const interrupted = yield* Deferred.make<void>()
        let interruptions = 0
        const wait = Tool.layer(
          Tool.make("wait"),
          () =>
            Effect.andThen(Queue.offer(starts, undefined), Effect.never).pipe(
              Effect.onInterrupt(() => {
                interruptions++
                return Deferred.succeed(interrupted, undefined)
              })
            )
        )
        const started = Tool.layer(Tool.make("started"), () => Effect.as(Queue.take(starts), "started"))
        const client = yield* server.client(server.server(CodeMode.layer({}, wait, started)) as server.Server, revision)
        const id = client.send("tools/call", { name: "execute", arguments: { code: "return tools.wait()" } })
        yield* Queue.take(starts)
        client.notify("notifications/cancelled", { requestId: id })
        yield* Deferred.await(interrupted)
        expect(client.answers(id)).toEqual([])
        // The program does not await the call. Concurrent calls start in any order.
        expect(yield* program(client, "tools.wait(); return tools.started()")).toBe("started")
        expect(interruptions).toBe(2)
      }))

    it.live(`${revision} · reports the progress of a tool as that of the program`, () =>
      Effect.gen(function*() {
        const work = Tool.layer(Tool.make("work"), () => Effect.as(Progress.report({ progress: 3, total: 4 }), "done"))
        const client = yield* server.client(server.server(CodeMode.layer({}, work)) as server.Server, revision)
        const { result } = yield* client.request("tools/call", {
          name: "execute",
          arguments: { code: "return tools.work()" },
          _meta: { progressToken: "p" }
        })
        expect(resultOf(result)).toBe("done")
        expect(client.notices("notifications/progress")).toMatchObject([
          { params: { progressToken: "p", progress: 3, total: 4 } }
        ])
      }))
  }

  it.live("lists all tools up to `above`, and keeps resources and further definitions", () =>
    Effect.gen(function*() {
      const note = Resource.layer(Resource.make("note://a", { name: "a" }), Effect.succeed("text"))
      const client = yield* server.client(office({ above: 2 }, note))
      expect(namesOf(yield* client.result("tools/list"))).toEqual(["list_orders", "greet"])
      expect((yield* client.result("resources/list")).resources).toHaveLength(1)
    }))

  it.live("has other names on request", () =>
    Effect.gen(function*() {
      const client = yield* server.client(office({ names: { search: "find", describe: "show", execute: "run" } }))
      const listed = yield* client.result("tools/list")
      expect(namesOf(listed)).toEqual(["find", "show", "run"])
      expect(listed.tools[2].description).toContain("Find tools with find, and read their schemas with show")
      const ran = yield* client.call("run", { code: "return tools.nothing()" })
      expect(failureOf(ran)).toContain("Find tools with find")
    }))

  it.live("passes each text whole, with NUL and of any length", () =>
    Effect.gen(function*() {
      const nul = "greet\u0000all"
      const long = `greet${"y".repeat(300)}`
      const named = (name: string) =>
        Layer.effectDiscard(Effect.flatMap(Catalog.Catalog, ({ tools }) =>
          tools.add(name, {
            definition: { name, inputSchema: { type: "object" } },
            call: () => Effect.succeed({ content: [{ type: "text", text: `a\u0000${name.length}` }] })
          })))
      const client = yield* server.client(office({}, named(nul) as never, named(long) as never))
      const { structuredContent } = yield* client.call("execute", {
        code:
          "console.log('a\\0b')\nreturn [await callTool('greet\\0all', {}), await callTool('greet' + 'y'.repeat(300))]"
      })
      expect(structuredContent).toEqual({
        result: [`a\u0000${nul.length}`, `a\u0000${long.length}`],
        log: ["a\u0000b"]
      })
      expect(yield* failing(client, "return callTool('none\\0greet')")).toContain("none\\u0000greet")
      expect(yield* failing(client, "throw new Error('a\\0b')")).toContain("a\\u{0}b")
    }))

  it.live("passes `__proto__` as a member, and changes no object of the server", () =>
    Effect.gen(function*() {
      let received: object | undefined
      const take = Tool.layer(
        Tool.make("take", { input: Schema.Record(Schema.String, Schema.Unknown) }),
        (value) => {
          received = value
          return Effect.succeed("taken")
        }
      )
      const client = yield* server.client(server.server(CodeMode.layer({}, take)) as server.Server)
      const code =
        "await tools.take(JSON.parse('{\"__proto__\": {\"polluted\": 1}, \"constructor\": {\"prototype\": {}}}'))\n" +
        "return JSON.parse('{\"__proto__\": {\"polluted\": 2}}')"
      const { structuredContent } = yield* client.call("execute", { code })
      expect(JSON.stringify(structuredContent)).toBe("{\"result\":{\"__proto__\":{\"polluted\":2}}}")
      expect(({} as { readonly polluted?: unknown }).polluted).toBeUndefined()
      expect((received as { readonly polluted?: unknown }).polluted).toBeUndefined()
    }))
})
