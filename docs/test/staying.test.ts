/** The programs of `staying.md`, run against Skein's servers. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ClientPool from "@skein/client/ClientPool"
import type { Transport } from "@skein/runtime/Connection"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { createServer } from "node:http"
import { Hello } from "../programs/hello.ts"
import * as Many from "../programs/many.ts"
import { NoteServer } from "../programs/resources.ts"
import * as Staying from "../programs/staying.ts"
import { TeaHouse } from "../programs/tools.ts"
import * as Tracing from "../programs/tracing.ts"
import { breakable, hello, inMemory, serving } from "./kit.ts"

describe("programs/staying.ts", () => {
  it.effect("reconnects, and reports the status", () =>
    Effect.gen(function*() {
      const { end, transport } = breakable(yield* serving(Hello))
      const client = yield* Staying.reconnecting(transport)
      const lines: Array<string> = []
      const lost = yield* Deferred.make<void>()
      const show = (line: string) =>
        Effect.andThen(
          Effect.sync(() => lines.push(line)),
          line.startsWith("Lost") ? Deferred.succeed(lost, undefined) : Effect.void
        )
      yield* Effect.forkChild(Staying.watch(client, (line) => Effect.asVoid(show(line))), { startImmediately: true })
      yield* end
      yield* Deferred.await(lost)
      const call = yield* Effect.forkChild(client.callTool("greet", { name: "Ada" }), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(call)).content).toMatchObject([{ text: "Hello, Ada!" }])
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      expect(lines).toEqual([
        "Connected to hello, 2026-07-28",
        expect.stringMatching(/^Lost\. Attempt 1 in \d+ ms$/),
        "Connected to hello, 2026-07-28"
      ])
    }))

  it.effect("retries a call with `retry`, and no other call of a tool", () =>
    Effect.gen(function*() {
      let paid = 0
      let begun = yield* Deferred.make<void>()
      const input = { invoice: Schema.String, idempotencyKey: Schema.String }
      const pay = Tool.layer(
        Tool.make("pay", { input }),
        () => ++paid === 1 ? Effect.andThen(Deferred.succeed(begun, undefined), Effect.never) : Effect.succeed("Paid")
      )
      const { end, transport } = breakable(yield* serving(McpServer.layer({ name: "bank", version: "1.0.0" }, pay)))
      const lostOnce = <A, E>(call: (client: Client.Client) => Effect.Effect<A, E>) =>
        Effect.gen(function*() {
          paid = 0
          begun = yield* Deferred.make<void>()
          const client = yield* Client.make(transport, { reconnect: true })
          const fiber = yield* Effect.forkChild(call(client), { startImmediately: true })
          yield* Deferred.await(begun)
          yield* end
          yield* TestClock.adjust("1 second")
          return yield* Effect.result(Fiber.join(fiber))
        })
      expect(yield* lostOnce((client) => Staying.pay(client, "7"))).toMatchObject({ _tag: "Success" })
      expect(paid).toBe(2)
      const args = { invoice: "8", idempotencyKey: "8" }
      expect(yield* lostOnce((client) => client.callTool("pay", args))).toMatchObject({
        failure: { reason: { _tag: "Closed" } }
      })
      expect(paid).toBe(1)
    }))

  it.live("passes the environment to a process, and restarts it when it dies", () =>
    Effect.gen(function*() {
      let output = ""
      const line = yield* Deferred.make<string>()
      const record = (text: string): void => {
        output += text
        if (output.includes("\n")) Deferred.doneUnsafe(line, Effect.succeed(output))
      }
      const program = "console.error(process.pid, process.env.TEA_TOKEN, process.env.TERM, process.env.NODE_OPTIONS);"
      const first = ["--import", `data:text/javascript,${encodeURIComponent(program)}`]
      const client = yield* Staying.startServer([...first, ...hello], record)
      const greet = Effect.map(client.callTool("greet", { name: "Ada" }), ({ content }) => content)
      expect(yield* greet).toMatchObject([{ text: "Hello, Ada!" }])
      const [, pid] = /^(\d+) s3cret undefined undefined\n$/.exec(yield* Deferred.await(line)) ?? []
      const again = yield* Effect.forkChild(
        Stream.runHead(Stream.filter(client.status, ({ _tag }) => _tag === "Reconnecting")),
        { startImmediately: true }
      )
      process.kill(Number(pid), "SIGKILL")
      yield* Fiber.join(again)
      expect(yield* greet).toMatchObject([{ text: "Hello, Ada!" }])
    }).pipe(Effect.scoped))
})

describe("programs/many.ts", () => {
  const broken: Transport = {
    connect: Effect.fail(new TransportError({ reason: new OpenFailed({ message: "The command was not found" }) }))
  }

  it.effect("lists a failed server without affecting the others", () =>
    Effect.gen(function*() {
      expect(yield* Many.inventory(yield* inMemory(TeaHouse), yield* inMemory(NoteServer), broken)).toEqual([
        "tea: bill",
        "notes: write",
        "broken: The command was not found"
      ])
    }))

  it.effect("lets a model call the tools of a pool, without excluded ones", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({
        tea: { transport: yield* inMemory(TeaHouse) },
        notes: { transport: yield* inMemory(NoteServer) },
        broken: { transport: broken }
      })
      expect((yield* Many.bill(pool)).structuredContent).toEqual({ total: 9 })
      const offered: Array<string> = []
      const call = { type: "tool-call", id: "1", name: "tea_bill", params: { tea: "sencha", cups: 4 } } as const
      const usage = { inputTokens: {}, outputTokens: {} }
      const model = LanguageModel.make({
        generateText: ({ tools }) => {
          offered.push(...tools.map(({ name }) => name))
          return Effect.succeed([call, { type: "finish", reason: "tool-calls", usage } as Response.PartEncoded])
        },
        streamText: () => Stream.empty
      })
      const answered = yield* Effect.provideServiceEffect(
        Many.answer(pool, "Four cups?", []),
        LanguageModel.LanguageModel,
        model
      )
      expect(offered).toEqual(["tea_bill"])
      expect(answered.toolResults[0]).toMatchObject({ result: { structuredContent: { total: 18 } } })
      const waiting = yield* Effect.provideServiceEffect(
        Many.answer(pool, "Four cups?", ["bill"]),
        LanguageModel.LanguageModel,
        model
      )
      expect(waiting.toolResults).toEqual([])
    }))
})

describe("programs/tracing.ts", () => {
  it.effect("makes a span for each request, inside the caller's span", () =>
    Effect.gen(function*() {
      const spans: Array<Tracer.NativeSpan> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const client = yield* Tracing.traced(yield* inMemory(Hello))
      yield* Effect.provideService(Tracing.turn(client), Tracer.Tracer, tracer)
      const ours = spans.filter(({ kind, name }) => kind === "client" || name === "turn")
      expect(ours.map(({ name }) => name)).toEqual(["turn", "tools/call greet"])
      expect(ours[1]!.attributes.get("server.address")).toBe("example.com")
    }))

  it.live("exports spans to the given URL", () =>
    Effect.gen(function*() {
      const received: Array<string> = []
      const collector = createServer((request, response) => {
        request.setEncoding("utf8").on("data", (text: string) => void received.push(text))
        request.on("end", () => response.end("{}"))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void collector.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => collector.closeAllConnections())
      )
      const { port } = collector.address() as { readonly port: number }
      yield* Effect.flatMap(Effect.flatMap(inMemory(Hello), Tracing.traced), Tracing.turn).pipe(
        Effect.scoped,
        Effect.provide(Tracing.tracedTo(`http://127.0.0.1:${port}`))
      )
      expect(received.join("")).toContain("\"name\":\"tools/call greet\"")
    }).pipe(Effect.scoped))
})
