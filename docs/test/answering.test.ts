/** The programs of `answering.md`, asked by Skein's servers in a session and in the stateless revision. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import type * as Sampling from "@skein/client/Sampling"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Answering from "../programs/answering.ts"
import { Asking } from "../programs/asking.ts"
import { inMemory, testedRevisions } from "./kit.ts"

interface Seen {
  readonly lines: Array<ReadonlyArray<string>>
  readonly visited: Array<string>
}

const screen = (answer: { readonly yes?: boolean; readonly form?: "declined" | "closed" | object } = {}) => {
  const seen: Seen = { lines: [], visited: [] }
  const shown: Answering.Screen = {
    confirm: (lines) => Effect.sync(() => seen.lines.push(lines) > 0 && answer.yes !== false),
    form: (title, { defaults, problem }) =>
      Effect.sync(() => {
        const { form = {} } = answer
        if (typeof form === "string") return form
        const entered = { ...defaults, ...form }
        seen.lines.push([title, JSON.stringify(entered), problem(entered) ?? "fits"])
        return entered
      }),
    browse: (address) => Effect.sync(() => void seen.visited.push(address))
  }
  return { seen, shown }
}

const textOf = ({ content }: { readonly content: ReadonlyArray<object> }): string =>
  content.map((block) => "text" in block ? String(block.text) : "").join("")

describe.each(testedRevisions)("programs/answering.ts, %s", (revision) => {
  const visit = <E>(services: Layer.Layer<never, E>, tool: string, args?: object) =>
    Effect.gen(function*() {
      const client = yield* Client.make(yield* inMemory(Asking), { label: "Tea", revisions: [revision] })
      return textOf(yield* client.callTool(tool, args))
    }).pipe(Effect.provide(services), Effect.scoped)

  it.effect("shows a form with its defaults, and returns accept, decline and cancel", () =>
    Effect.gen(function*() {
      const one = screen({ form: { people: 3 } })
      expect(yield* visit(Answering.forms(one.shown), "book")).toBe("A table for 3, inside")
      expect(one.seen.lines).toEqual([["Tea asks", "{\"where\":\"in\",\"people\":3}", "fits"]])
      const no = screen({ form: "declined" })
      expect(yield* visit(Answering.forms(no.shown), "cancel")).toBe("Kept: the user declined")
      const closed = screen({ form: "closed" })
      expect(yield* visit(Answering.forms(closed.shown), "cancel")).toBe("Kept: the user closed the question")
      const opened = Effect.flatMap(inMemory(Asking), (transport) =>
        Effect.provide(
          Effect.flatMap(Client.Client, (client) => client.callTool("cancel")),
          Answering.open(transport, screen({ form: { sure: true } }).shown)
        ))
      expect(textOf(yield* opened)).toBe("Cancelled")
    }))

  it.effect("opens a URL only after consent", () =>
    Effect.gen(function*() {
      const { seen, shown } = screen()
      expect(yield* visit(Answering.addresses(shown), "pay")).toBe("Thank you")
      expect(seen.lines[0]![0]).toBe("Tea wants you to visit pay.example.com: Please pay")
      expect(seen.visited).toEqual([seen.lines[0]![1]])
      const no = screen({ yes: false })
      expect(yield* visit(Answering.addresses(no.shown), "pay")).toContain("The user declined")
      expect(no.seen.visited).toEqual([])
    }))

  it.effect("answers with the roots at the time of the question", () =>
    Effect.gen(function*() {
      const { folders, roots } = yield* Answering.workspace
      const client = yield* Effect.provide(
        Effect.flatMap(inMemory(Asking), (transport) => Client.make(transport, { revisions: [revision] })),
        yield* Layer.build(roots)
      )
      expect(textOf(yield* client.callTool("places"))).toBe("file:///home/ada/tea")
      yield* SubscriptionRef.set(folders, [{ uri: "file:///home/ada/cakes" }])
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      expect(textOf(yield* client.callTool("places"))).toBe("file:///home/ada/cakes")
    }))

  it.effect("asks the model only if a person agrees", () =>
    Effect.gen(function*() {
      const answer: Sampling.Answer = { role: "assistant", model: "m", content: { type: "text", text: "Short" } }
      const { seen, shown } = screen()
      const models = Answering.models(shown, () => Effect.succeed(answer))
      expect(yield* visit(models, "summarize", { text: "long" })).toBe("Short")
      expect(seen.lines[0]![0]).toBe("Tea asks the model, up to 200 tokens")
      const no = Answering.models(screen({ yes: false }).shown, () => Effect.succeed(answer))
      const refused = yield* Effect.result(visit(no, "summarize", { text: "long" }))
      expect(refused).toMatchObject(
        revision === "2026-07-28" ? { failure: { reason: { _tag: "InputRefused" } } } : { _tag: "Success" }
      )
    }))

  it.effect("answers with a model of effect/ai, within the server's maxTokens", () =>
    Effect.gen(function*() {
      let most = 0
      const model = LanguageModel.make({
        generateText: () =>
          Effect.gen(function*() {
            most = yield* Answering.MaxTokens
            const usage = { inputTokens: {}, outputTokens: {} }
            return [{ type: "text", text: "Short" }, { type: "finish", reason: "stop", usage }] as Array<
              Response.PartEncoded
            >
          }),
        streamText: () => Stream.empty
      })
      const answering = Answering.languageModel(screen().shown)
      const services = Layer.provide(answering, Layer.effect(LanguageModel.LanguageModel, model))
      expect(yield* visit(services, "summarize", { text: "long" })).toBe("Short")
      expect(most).toBe(200)
    }))
})
