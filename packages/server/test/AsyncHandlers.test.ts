/** Handlers that return promises, in all revisions. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type { HandlerContext } from "@skein/server/HandlerContext"
import { VisibleError } from "@skein/server/HandlerError"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { z } from "zod"
import * as kit from "./input/kit.ts"
import * as base from "./kit.ts"

const answer: kit.Answerer = ({ method, params }) => {
  if (method === "roots/list") return { roots: [{ uri: "file:///home" }] }
  if (method === "sampling/createMessage") {
    const text = `re: ${params.messages[0].content.text}`
    return { role: "assistant", model: "m", content: { type: "text", text }, stopReason: "endTurn" }
  }
  return params.mode === "url" ? { action: "accept" } : kit.accept({ people: 3 })
}

const one = (run: (context: HandlerContext) => unknown) =>
  base.server(Tool.async(Tool.make("t"), async (_, context) => String(await run(context))))

/** Calls the tool of a server that has only this handler. */
const call = (revision: Revision.Revision, run: (context: HandlerContext) => unknown) =>
  Effect.flatMap(kit.client(one(run), { revision, answer }), (client) => client.call("t"))

class SoldOut extends Data.TaggedError("SoldOut")<{ readonly message: string }> {}

const secret = "postgres://user:hunter2@db"

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect("a tool, a resource, a template and a prompt return values and promises", () =>
      Effect.gen(function*() {
        const server = base.server(
          Tool.async(Tool.make("add", { input: z.object({ a: z.number(), b: z.number() }) }), ({ a, b }) => `${a + b}`),
          Tool.async(
            Tool.make("later", { output: { sum: Schema.Int } }),
            () => new Promise<{ sum: number }>((resolve) => setImmediate(() => resolve({ sum: 7 })))
          ),
          Resource.async(Resource.make("test://menu"), async () => "# Tea"),
          ResourceTemplate.async(ResourceTemplate.make("test://{id}", { name: "n" }), async ({ id }, uri) =>
            `${id} ${uri}`),
          Prompt.async(Prompt.make("greet", { arguments: { name: Schema.String } }), async ({ name }) =>
            `Greet ${name}`)
        )
        const client = yield* kit.client(server, { revision })
        expect(yield* client.call("add", { a: 1, b: 2 })).toBe("3")
        expect(yield* client.call("later")).toBe("{\"sum\":7}")
        const read = (uri: string) =>
          Effect.map(client.request("resources/read", { uri }), ({ result }) => result.contents[0].text)
        expect(yield* read("test://menu")).toBe("# Tea")
        expect(yield* read("test://x")).toBe("x test://x")
        const { result } = yield* client.request("prompts/get", { name: "greet", arguments: { name: "Ada" } })
        expect(result.messages[0].content.text).toBe("Greet Ada")
      }))

    it.effect("asks the client, one request after the other and several at once, and runs `once` once", () =>
      Effect.gen(function*() {
        let runs = 0
        const client = yield* kit.client(
          one(async ({ once, roots, sample }) => {
            const [found, { content: [block] }] = await Promise.all([
              roots(),
              sample({ messages: "Which tea?", maxTokens: 5 })
            ])
            const id = await once("reserve", async () => ++runs)
            const again = await sample({ messages: "Sure?", maxTokens: 5 })
            return [found[0]!.uri, block, id, again.content[0]].map((part) => JSON.stringify(part)).join(" ")
          }),
          { revision, answer }
        )
        const text = "\"file:///home\" {\"type\":\"text\",\"text\":\"re: Which tea?\"} 1 " +
          "{\"type\":\"text\",\"text\":\"re: Sure?\"}"
        expect(yield* client.call("t")).toBe(text)
        expect(runs).toBe(1)
        expect(client.asked).toHaveLength(3)
      }))

    it.effect("receives a form with fields of Effect or of zod", () =>
      Effect.gen(function*() {
        const people = ({ elicit }: HandlerContext) =>
          elicit("How many?", { people: Schema.Int }).then((answer) =>
            answer.action === "accept" ? answer.content.people : answer.action
          )
        const zod = ({ elicit }: HandlerContext) =>
          elicit("How many?", z.object({ people: z.int().max(8), name: z.string().default("Ada") }))
            .then((answer) => answer.action === "accept" ? `${answer.content.people} ${answer.content.name}` : "")
        if (revision < "2025-06-18") {
          expect(yield* call(revision, people)).toContain(`failed: ${revision} does not have elicitation/create`)
        } else {
          expect(yield* call(revision, people)).toBe("3")
          expect(yield* call(revision, zod)).toBe("3 Ada")
          const tooMany = ({ elicit }: HandlerContext) =>
            elicit("How many?", z.object({ people: z.int().max(2) })).then(() => "")
          expect(yield* call(revision, tooMany)).toContain("failed: invalid form content")
          // The types refuse it.
          const fields = z.object({ a: z.object({ b: z.string() }) }) as never
          const nested = ({ elicit }: HandlerContext) => elicit("?", fields)
          expect(yield* call(revision, nested)).toContain(
            "a form cannot have the field \"a\": it has fields of its own"
          )
        }
      }))

    it.effect("shows the messages of visible errors, and a reference for others, which are logged", () =>
      Effect.gen(function*() {
        const logged: Array<string> = []
        const logger = Logger.make<unknown, void>(({ cause, logLevel, message }) => {
          logged.push(`${logLevel}: ${String(message)} ${Cause.pretty(cause)}`)
        })
        const failing = (error: () => unknown) =>
          Effect.map(
            Effect.provide(
              call(revision, async () => {
                throw error()
              }),
              Logger.layer([logger])
            ),
            (text) => text.replace(/[0-9a-f-]{36}/, "<id>")
          )
        expect(yield* failing(() => new VisibleError("No tea is left"))).toBe("failed: No tea is left")
        expect(yield* failing(() => new SoldOut({ message: "No tea today" }))).toBe("failed: No tea today")
        expect(yield* failing(() => McpError.invalidParams("no such tea"))).toBe("-32602 no such tea")
        expect(logged).toEqual([])
        for (
          const error of [
            () => new Error(secret),
            () => secret,
            () => null,
            () => Object.assign(new Error(secret), { code: "ECONNREFUSED" })
          ]
        ) {
          expect(yield* failing(error)).toMatch(/^failed: The tool t failed unexpectedly\. The log .* reference <id>$/)
        }
        expect(logged).toHaveLength(4)
        expect(logged[0]).toMatch(/^Error: /)
        expect(logged[0]).toContain("hunter2")
      }))
  })
}

describe("an effect that fails with `Effect.tryPromise` alone", () => {
  it.effect("is answered with a reference, and its cause is logged", () =>
    Effect.gen(function*() {
      const logged: Array<unknown> = []
      const failing = Effect.tryPromise(() => Promise.reject(new Error(secret)))
      const server = base.server(
        Tool.layer(Tool.make("t"), () => Effect.as(failing, "")),
        Resource.layer(Resource.make("test://r"), Effect.as(failing, "")),
        Prompt.layer(Prompt.make("p"), () => Effect.as(failing, ""))
      )
      yield* Effect.gen(function*() {
        const client = yield* kit.client(server, { revision: "2025-11-25" })
        for (
          const [method, params] of [
            ["tools/call", { name: "t" }],
            ["resources/read", { uri: "test://r" }],
            ["prompts/get", { name: "p" }]
          ] as const
        ) {
          const { error, result } = yield* client.request(method, params)
          if (method === "tools/call") expect(base.referenceOf(result, "t")).toEqual(expect.any(String))
          else expect(error).toMatchObject({ code: -32603 })
          expect(JSON.stringify([error, result])).not.toContain("hunter2")
        }
      }).pipe(Effect.provide(Logger.layer([Logger.make(({ cause }) => void logged.push(cause))])))
      expect(logged).toHaveLength(3)
      expect(JSON.stringify(logged[0])).toContain("UnknownError")
    }))
})

describe("the end of an async handler", () => {
  it.effect("a cancelled request aborts the signal, rejects what is pending, and runs `finally`", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const started = Promise.withResolvers<void>()
      const client = yield* kit.client(
        one(async ({ progress, roots, signal }) => {
          signal.addEventListener("abort", () => log.push("aborted"))
          try {
            started.resolve()
            await roots()
          } catch (error) {
            log.push(`${(error as Error).name} ${signal.aborted}`)
            await progress({ progress: 1 }).catch((error: Error) => log.push(`later ${error.name}`))
          } finally {
            log.push("finally")
          }
        }),
        { revision: "2025-11-25" }
      )
      const id = client.send("tools/call", { name: "t" })
      yield* Effect.promise(() => started.promise)
      yield* Effect.promise(() => new Promise(setImmediate))
      client.notify("notifications/cancelled", { requestId: id })
      yield* Effect.promise(() => new Promise(setImmediate))
      expect(log).toEqual(["aborted", "AbortError true", "later AbortError", "finally"])
    }))

  const ends: ReadonlyArray<readonly [name: string, end: () => string]> = [["returns", () => "done"], ["throws", () => {
    throw new VisibleError("no")
  }]]
  for (const [name, end] of ends) {
    it.effect(`a handler that ${name} has not ended early: the signal does not abort, and later calls are rejected`, () =>
      Effect.gen(function*() {
        const seen: Array<HandlerContext> = []
        const server = base.server(
          Tool.async(Tool.make("sync"), (_, context) => {
            seen.push(context)
            return end()
          }),
          Tool.async(Tool.make("async"), async (_, context) => {
            seen.push(context)
            await context.progress({ progress: 1 })
            return end()
          })
        )
        const client = yield* kit.client(server, { revision: "2025-11-25" })
        for (const tool of ["sync", "async"]) yield* client.request("tools/call", { name: tool })
        expect(seen.map(({ signal }) => signal.aborted)).toEqual([false, false])
        for (const { progress } of seen) {
          const late = yield* Effect.promise(() => progress({ progress: 2 }).catch((error: Error) => error.name))
          expect(late).toBe("AbortError")
        }
      }))
  }

  it.effect("2026-07-28 · the end of a round aborts, and ignores what the handler does then", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const client = yield* kit.client(
        one(async ({ roots, signal }) => {
          try {
            return `found ${(await roots()).length}`
          } catch {
            log.push(`aborted: ${signal.aborted}`)
            return "never seen"
          }
        }),
        { revision: "2026-07-28", answer }
      )
      expect(yield* client.call("t")).toBe("found 1")
      expect(log).toEqual(["aborted: true"])
    }))

  it.effect("a promise that the handler does not await cannot end the process, and its work ends with the handler", () =>
    Effect.gen(function*() {
      const rejections: Array<unknown> = []
      const listener = (reason: unknown) => void rejections.push(reason)
      process.on("unhandledRejection", listener)
      let interrupted = false
      const text = yield* call("2025-11-25", async ({ elicit, run }) => {
        void run(Effect.sleep(0))
        void run(Effect.onInterrupt(Effect.never, () => Effect.sync(() => (interrupted = true))))
        void run(Effect.fail("nobody waits"))
        void elicit("?", { people: Schema.Int })
        return "done"
      })
      while (!interrupted) yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      process.off("unhandledRejection", listener)
      expect([text, rejections]).toEqual(["done", []])
    }))
})

describe("the context of an async handler", () => {
  class Kettle extends Context.Service<Kettle, { readonly boil: Effect.Effect<string> }>()("test/Kettle") {}

  it.effect("runs effects with the services of the layer, and rejects with their failures", () =>
    Effect.gen(function*() {
      const server = base.server(
        Tool.async(Tool.make("t"), async (_, { run }: HandlerContext<Kettle>) => {
          const failure = await run(Effect.fail(new SoldOut({ message: "empty" }))).catch((error: SoldOut) =>
            error._tag
          )
          return `${failure} ${await run(Effect.flatMap(Kettle, ({ boil }) => boil))}`
        }).pipe(Layer.provide(Layer.succeed(Kettle, { boil: Effect.succeed("hot") })))
      )
      const client = yield* kit.client(server, { revision: "2025-11-25" })
      expect(yield* client.call("t")).toBe("SoldOut hot")
    }))

  it.effect("has the caller, reports progress and logs", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(
        one(async ({ client, header, log, principal, progress, request }) => {
          log.warn("careful", { step: 1 })
          await progress({ progress: 1, total: 2, message: "half" })
          await progress({ progress: 2, total: 2 })
          return [client?.name, header("X-Tea"), principal?.id, request.method].join()
        }),
        { revision: "2025-11-25", principal: { id: "ada" } }
      )
      const { result } = yield* client.request("tools/call", { name: "t", _meta: { progressToken: 7 } })
      expect(result.content[0].text).toBe("kit,,ada,tools/call")
      expect(client.notices("notifications/progress").map(({ params }) => params)).toEqual([
        { progressToken: 7, progress: 1, total: 2, message: "half" },
        { progressToken: 7, progress: 2, total: 2 }
      ])
      expect(client.notices("notifications/message")[0]).toMatchObject({ params: { level: "warning" } })
    }))

  it.effect("returns the JSON form of a result of `once`, refuses one that JSON cannot hold, and keeps undefined", () =>
    Effect.gen(function*() {
      expect(yield* call("2026-07-28", ({ once }) => once("a", () => undefined))).toBe("undefined")
      expect(yield* call("2026-07-28", ({ once }) => once("a", () => new Date(0)))).toBe("1970-01-01T00:00:00.000Z")
      for (const value of [1n, () => 1, Number.NaN, new Map(), [new Map()]]) {
        expect(yield* call("2026-07-28", ({ once }) => once<unknown>("a", () => value))).toMatch(
          /^failed: The tool t failed unexpectedly/
        )
      }
    }))

  it.effect("an effect that starts beside another one runs at the same time", () =>
    Effect.gen(function*() {
      const text = yield* Effect.timeout(
        call("2025-11-25", async ({ run }) => {
          const order: Array<string> = []
          const gate = Promise.withResolvers<void>()
          const slow = run(Effect.andThen(Effect.promise(() => gate.promise), Effect.sync(() => order.push("slow"))))
          await run(Effect.sync(() => order.push("quick")))
          gate.resolve()
          await slow
          return order.join()
        }),
        "5 seconds"
      )
      expect(text).toBe("quick,slow")
    }))
})

it.effect("a layer that the scope closes interrupts its calls", () =>
  Effect.gen(function*() {
    const seen = Promise.withResolvers<AbortSignal>()
    const fiber = yield* Effect.forkChild(
      Effect.scoped(call("2025-11-25", ({ signal }) => {
        seen.resolve(signal)
        return new Promise(() => {})
      }))
    )
    const signal = yield* Effect.promise(() => seen.promise)
    yield* Fiber.interrupt(fiber)
    expect(signal.aborted).toBe(true)
  }))
