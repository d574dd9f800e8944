/** The programs of `asking.md`, called by the same client in a session and in the stateless revision. */
import { describe, expect, it } from "@effect/vitest"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "../../packages/server/test/input/kit.ts"
import { Asking, reserved } from "../programs/asking.ts"
import { Shop } from "../programs/keys.ts"

const testedRevisions = ["2025-11-25", "2026-07-28"] as const

const sure: kit.Answerer = () => kit.accept({ sure: true })

describe.each(testedRevisions)("programs/asking.ts, %s", (revision) => {
  it.effect("returns a typed form, and rejects an answer that does not match", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(Asking, {
        revision,
        answer: () => kit.accept({ people: 3, where: "out" })
      })
      expect(yield* client.call("book")).toBe("A table for 3, in the garden")
      const [{ params }] = client.asked as [kit.Question]
      expect(params.requestedSchema.properties.people).toMatchObject({ type: "integer", minimum: 1, maximum: 12 })
      expect(params.requestedSchema.required).toEqual(["people"])
      expect(params.requestedSchema.properties.where.default).toBe("in")
      client.answer = () => ({ action: "decline" })
      expect(yield* client.call("book")).toBe("failed: The user declined")
      client.answer = () => kit.accept({ people: 300, where: "out" })
      expect(yield* client.call("book")).toContain("failed: invalid form content")
    }))

  it.effect("distinguishes accept, decline and cancel, and handles a client that cannot be asked", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(Asking, { revision, answer: sure })
      expect(yield* client.call("cancel")).toBe("Cancelled")
      client.answer = () => ({ action: "decline" })
      expect(yield* client.call("cancel")).toBe("Kept: the user declined")
      client.answer = () => ({ action: "cancel" })
      expect(yield* client.call("cancel")).toBe("Kept: the user closed the question")
      const mute = yield* kit.client(Asking, { revision, capabilities: {} })
      expect(yield* mute.call("cancel")).toBe("Call us to cancel")
      const textOf = yield* mute.call("book")
      expect(textOf).toMatch(revision === "2026-07-28" ? /^-32021/ : /^failed: elicitation\/create needs a capability/)
    }))

  it.effect("runs the effect of `once` once", () =>
    Effect.gen(function*() {
      reserved.length = 0
      const client = yield* kit.client(Asking, { revision, answer: sure })
      expect(yield* client.call("order")).toBe("Yours: table 1")
      expect(reserved.length).toBe(1)
    }))

  it.effect("sends parallel questions together", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(Asking, {
        revision,
        answer: ({ params }) => kit.accept({ city: params.message === "Where to?" ? "Oslo" : "Rome" })
      })
      expect(yield* client.call("trip")).toBe("Rome to Oslo")
      // In the stateless revision: one request, and a second one with both answers.
      if (revision === "2026-07-28") expect(client.sent).toBe(2)
    }))

  it.effect("asks once about a value that changes with time", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(42)
      const client = yield* kit.client(Asking, { revision, answer: sure })
      const asked = client.call("exchange")
      expect(yield* asked).toBe("Changed at 42")
      expect(client.asked.length).toBe(1)
      if (revision === "2026-07-28") expect(client.asked[0]!.key).toBe("offer")
    }))

  it.effect("asks for a URL to be visited, for the model and for the roots", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(Asking, {
        revision,
        answer: ({ method }) =>
          method === "sampling/createMessage"
            ? { role: "assistant", model: "m", content: { type: "text", text: "Short" } }
            : method === "roots/list"
            ? { roots: [{ uri: "file:///work" }] }
            : { action: "accept" }
      })
      expect(yield* client.call("pay")).toBe("Thank you")
      expect(client.asked[0]!.params.url).toMatch(/^https:\/\/pay\.example\.com\/[\w-]{36}$/)
      expect(client.notices("notifications/elicitation/complete").length).toBe(revision === "2025-11-25" ? 1 : 0)
      expect(yield* client.call("summarize", { text: "long" })).toBe("Short")
      expect(yield* client.call("places")).toBe("file:///work")
    }))
})

describe("programs/keys.ts", () => {
  const environment = (env: Record<string, string>) =>
    Layer.provide(Shop, Layer.succeed(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })))
  const key = "0123456789abcdef0123456789abcdef"
  const secret = environment({ STATE_KEY: key })

  it.effect("continues on another instance with the same key, and rejects another key or expired state", () =>
    Effect.gen(function*() {
      const revision = "2026-07-28"
      const one = yield* kit.client(secret, { revision, answer: sure })
      const two = yield* kit.client(secret, { revision, answer: sure })
      const { result } = yield* one.once("tools/call", { name: "order" })
      const retry = {
        name: "order",
        inputResponses: one.responses(result),
        requestState: result.requestState
      }
      expect(kit.textOf(yield* two.once("tools/call", retry))).toBe("Ordered")
      const stranger = yield* kit.client(environment({ STATE_KEY: `${key}!` }), { revision })
      expect(kit.textOf(yield* stranger.once("tools/call", retry))).toMatch(/^-32602 .*this server has not issued it/)
      yield* TestClock.adjust("5 minutes")
      expect(kit.textOf(yield* two.once("tools/call", retry))).toMatch(/^-32602 .*expired/)
    }))

  it.effect("fails to build without a key or with a short one", () =>
    Effect.gen(function*() {
      for (const env of [{}, { STATE_KEY: "short" }]) {
        const exit = yield* Effect.exit(Effect.scoped(Layer.build(environment(env))))
        expect(Exit.isFailure(exit)).toBe(true)
        expect(JSON.stringify(exit)).toContain("STATE_KEY" in env ? "RequestStateKeyError" : Config.ConfigError.name)
      }
    }))
})
