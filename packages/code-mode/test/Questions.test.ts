/** Programs whose tools ask the user, in both eras. */
import { describe, expect, it } from "@effect/vitest"
import * as CodeMode from "@skein/code-mode/CodeMode"
import * as Elicitation from "@skein/server/Elicitation"
import { VisibleError } from "@skein/server/HandlerError"
import { once } from "@skein/server/Once"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as input from "../../server/test/input/kit.ts"
import * as server from "../../server/test/kit.ts"
import { eras } from "./kit.ts"

/** How often each tool ran. */
interface Counts {
  [name: string]: number
}

const shop = (counts: Counts, options: CodeMode.Options = {}) => {
  const count = (name: string) => counts[name] = (counts[name] ?? 0) + 1
  const ask = Tool.layer(
    Tool.make("ask", { input: { text: Schema.String } }),
    ({ text }) =>
      Effect.map(
        Elicitation.accepted(Elicitation.form(text, { cups: Schema.Int })),
        ({ cups }) => {
          count("ask")
          return `${cups} cups`
        }
      )
  )
  const plain = (name: string, annotations?: { readonly readOnlyHint?: boolean; readonly idempotentHint?: boolean }) =>
    Tool.layer(
      Tool.make(name, { input: { n: Schema.Int }, ...(annotations === undefined ? undefined : { annotations }) }),
      ({ n }) => n < 0 ? Effect.fail(new VisibleError("too few")) : Effect.sync(() => `${name} ${count(name)}`)
    )
  const reserve = Tool.layer(
    Tool.make("reserve", { input: { tea: Schema.String } }),
    ({ tea }) =>
      Effect.gen(function*() {
        const id = yield* once("id", Schema.String, Effect.sync(() => `${tea}-${count("reserve")}`))
        yield* Elicitation.accepted(Elicitation.form(`Reserve ${tea}?`, { cups: Schema.Int }))
        return id
      })
  )
  const tools = [
    ask,
    plain("send"),
    plain("read", { readOnlyHint: true }),
    plain("put", { idempotentHint: true }),
    reserve
  ]
  return server.server(CodeMode.layer(options, ...tools)) as server.Server
}

const run = (client: input.Client, code: string) =>
  Effect.map(client.call("execute", { code }), (text) => text.startsWith("{") ? JSON.parse(text).result : text)

describe("a tool that asks the user", () => {
  for (const revision of eras) {
    it.live(`${revision} · receives the answer, and no earlier call repeats`, () =>
      Effect.gen(function*() {
        const counts: Counts = {}
        const client = yield* input.client(shop(counts), { revision, answer: () => input.accept({ cups: 2 }) })
        const code = `
          const sent = [await tools.send({ n: 1 }), await tools.send({ n: 1 }), await tools.send({ n: 2 })]
          const failed = await tools.send({ n: -1 }).catch((error) => error.message)
          const read = await tools.read({ n: 1 })
          const put = await tools.put({ n: 1 })
          const cups = [await tools.ask({ text: "First?" }), await tools.ask({ text: "Second?" })]
          return { sent, failed, cups }
        `
        expect(yield* run(client, code)).toEqual({
          sent: ["send 1", "send 2", "send 3"],
          failed: "too few",
          cups: ["2 cups", "2 cups"]
        })
        expect(client.asked.map(({ params }) => params.message)).toEqual(["First?", "Second?"])
        // Tools that say that they may be called again are called in each of the three rounds.
        const repeated = revision === "2026-07-28" ? 3 : 1
        expect(counts).toEqual({ send: 3, ask: 2, read: repeated, put: repeated })
      }))

    it.live(`${revision} · has a \`once\` of its own in each call`, () =>
      Effect.gen(function*() {
        const counts: Counts = {}
        const client = yield* input.client(shop(counts), { revision, answer: () => input.accept({ cups: 1 }) })
        const code = "return [await tools.reserve({ tea: \"green\" }), await tools.reserve({ tea: \"black\" })]"
        expect(yield* run(client, code)).toEqual(["green-1", "black-2"])
        expect(counts).toEqual({ reserve: 2 })
      }))

    it.live(`${revision} · asks at the same time as another one`, () =>
      Effect.gen(function*() {
        const client = yield* input.client(shop({}), {
          revision,
          answer: ({ params }) => input.accept({ cups: params.message.length })
        })
        const code = "return Promise.all([tools.ask({ text: \"12\" }), tools.ask({ text: \"1234\" })])"
        expect(yield* run(client, code)).toEqual(["2 cups", "4 cups"])
      }))

    it.live(`${revision} · fails in the program if the client cannot ask`, () =>
      Effect.gen(function*() {
        const client = yield* input.client(shop({}), { revision, capabilities: {} })
        expect(yield* run(client, "try { await tools.ask({ text: \"?\" }) } catch (error) { return error.message }"))
          .toMatch(/capability/)
      }))
  }

  it.effect("2025-11-25 · stops the clock of `timeout` while the user answers", () =>
    Effect.gen(function*() {
      const client = yield* input.client(shop({}, { limits: { timeout: "5 seconds" } }), { revision: "2025-11-25" })
      const id = client.send("tools/call", {
        name: "execute",
        arguments: { code: "return tools.ask({ text: \"Cups?\" })" }
      })
      const asked = () => client.notices("elicitation/create")
      yield* TestClock.withLive(Effect.repeat(Effect.sleep(10), { until: () => asked().length > 0 }))
      yield* TestClock.adjust("1 minute")
      client.connection.send({ _tag: "Success", id: asked()[0].id, result: input.accept({ cups: 3 }) } as never)
      const answer = () => client.received.find((message) => message.id === id && message.method === undefined)
      yield* TestClock.withLive(Effect.repeat(Effect.sleep(10), { until: () => answer() !== undefined }))
      expect(answer().result.structuredContent).toEqual({ result: "3 cups" })
    }))
})
