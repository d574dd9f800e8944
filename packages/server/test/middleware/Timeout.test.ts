import { describe, expect, it } from "@effect/vitest"
import * as Middleware from "@skein/server/Middleware"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Timeout from "@skein/server/Timeout"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

const never = (name: string, events: Array<string> = []) =>
  Tool.layer(
    Tool.make(name),
    () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void events.push(`${name} interrupted`)))
  )

for (const revision of support.eras) {
  describe(`${revision} · timeout`, () => {
    it.effect("interrupts a tool at its limit, and answers with isError", () =>
      Effect.gen(function*() {
        const events: Array<string> = []
        const client = yield* kit.client(
          kit.server(Timeout.layer({ timeout: "2 seconds" }), never("slow", events)),
          revision
        )
        const id = client.send("tools/call", { name: "slow" })
        yield* kit.settle
        yield* TestClock.adjust("1999 millis")
        expect(client.answers(id)).toEqual([])
        yield* TestClock.adjust("1 millis")
        const { result } = yield* client.answer(id)
        expect(result).toMatchObject({
          isError: true,
          content: [{ type: "text", text: "tools/call slow took longer than 2 s" }]
        })
        expect(events).toEqual(["slow interrupted"])
      }))

    it.effect("answers every other method with -32603 and the limit", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.server(
            Timeout.layer({ timeout: "1 second", methods: { "prompts/get": "300 millis" } }),
            Resource.layer(Resource.make("a://b"), Effect.never),
            Prompt.layer(Prompt.make("p"), () => Effect.never)
          ),
          revision
        )
        const read = client.send("resources/read", { uri: "a://b" })
        const get = client.send("prompts/get", { name: "p" })
        yield* kit.settle
        yield* TestClock.adjust("300 millis")
        expect((yield* client.answer(get)).error).toEqual({
          code: -32603,
          message: "prompts/get p took longer than 300 ms",
          data: { limitMs: 300 }
        })
        expect(client.answers(read)).toEqual([])
        yield* TestClock.adjust("700 millis")
        expect((yield* client.answer(read)).error.data).toEqual({ limitMs: 1000 })
      }))

    it.effect("a tool may have its own limit, or none", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.server(
            Timeout.layer({ tools: { quick: "1 second", patient: Infinity } }),
            never("quick"),
            never("plain"),
            never("patient")
          ),
          revision
        )
        const [quick, plain, patient] = ["quick", "plain", "patient"].map((name) => client.send("tools/call", { name }))
        yield* kit.settle
        const answered = () => [quick, plain, patient].map((id) => client.answers(id!).length)
        yield* TestClock.adjust("1 second")
        expect(answered()).toEqual([1, 0, 0])
        yield* TestClock.adjust("59 seconds")
        expect(answered()).toEqual([1, 1, 0])
        yield* TestClock.adjust("1 day")
        expect(answered()).toEqual([1, 1, 0])
      }))

    it.effect("answers requests within the limit unchanged: synchronous, later, with an error or a defect", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.server(
            Timeout.layer(),
            Tool.layer(Tool.make("now"), () => Effect.succeed("now")),
            Tool.layer(Tool.make("later"), () => Effect.as(Effect.sleep("10 seconds"), "later")),
            Tool.layer(Tool.make("dies"), () => Effect.andThen(Effect.sleep("10 seconds"), Effect.die("dead")))
          ),
          revision
        )
        expect((yield* client.call("now")).content[0].text).toBe("now")
        const [later, dies] = ["later", "dies"].map((name) => client.send("tools/call", { name }))
        yield* kit.settle
        yield* TestClock.adjust("10 seconds")
        expect((yield* client.answer(later!)).result.content[0].text).toBe("later")
        kit.referenceOf((yield* client.answer(dies!)).result, "dies")
      }))

    it.effect("interrupts the handler of a cancelled request without a response", () =>
      Effect.gen(function*() {
        const events: Array<string> = []
        const client = yield* kit.client(kit.server(Timeout.layer(), never("slow", events)), revision)
        const id = client.send("tools/call", { name: "slow" })
        yield* kit.settle
        client.notify("notifications/cancelled", { requestId: id })
        yield* kit.settle
        expect(events).toEqual(["slow interrupted"])
        yield* TestClock.adjust("1 hour")
        expect(client.answers(id)).toEqual([])
      }))

    it.effect("abandons a handler that does not stop within 5 seconds, and logs it", () =>
      kit.logged((lines) =>
        Effect.gen(function*() {
          const stubborn = Tool.layer(Tool.make("stubborn"), () => Effect.uninterruptible(Effect.sleep("1 hour")))
          const limit = Timeout.layer({ timeout: "1 second" })
          const client = yield* kit.client(kit.server(limit, stubborn), revision)
          const id = client.send("tools/call", { name: "stubborn" })
          yield* kit.settle
          yield* TestClock.adjust("5999 millis")
          expect(client.answers(id)).toEqual([])
          yield* TestClock.adjust("1 millis")
          expect((yield* client.answer(id)).result.isError).toBe(true)
          expect(lines.filter((line) => line.includes("did not stop within 5 s;"))).toHaveLength(1)
          yield* TestClock.adjust("1 hour")
          expect(client.answers(id)).toHaveLength(1)
        })
      ))
  })
}

it.effect("2026-07-28 · subscriptions/listen has no limit by default", () =>
  Effect.gen(function*() {
    const forever = Middleware.layer((next) => (exchange) =>
      exchange.method === "subscriptions/listen" ? Effect.never : next(exchange)
    )
    const tool = Tool.layer(Tool.make("t"), () => Effect.succeed("x"))
    const listen = (limit: ReturnType<typeof Timeout.layer>) =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(limit, forever, tool), "2026-07-28")
        const id = client.send("subscriptions/listen", { notifications: {} })
        yield* kit.settle
        yield* TestClock.adjust("1 day")
        return client.answers(id).length
      })
    expect(yield* listen(Timeout.layer())).toBe(0)
    expect(yield* listen(Timeout.layer({ methods: { "subscriptions/listen": "1 hour" } }))).toBe(1)
  }))
