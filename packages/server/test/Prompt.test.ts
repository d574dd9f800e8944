import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Content from "@skein/server/Content"
import * as Prompt from "@skein/server/Prompt"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

const plan = Prompt.make("plan", {
  description: "Plans a day",
  arguments: {
    day: Schema.DateFromString.annotate({ description: "Which day" }),
    hours: Schema.optionalKey(Schema.NumberFromString),
    mood: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("calm"))).annotateKey({ title: "Mood" }),
    place: Schema.optional(Schema.String.annotate({ description: "Where" }).check(Schema.isMinLength(2)))
  }
})
const live = Prompt.layer(plan, (args) => Effect.succeed(JSON.stringify(args)))
const got = (args?: kit.Json, revision: Revision.Revision = "2026-07-28") =>
  Effect.gen(function*() {
    const client = yield* kit.client(kit.server(live), revision)
    const { error, result } = yield* client.request("prompts/get", { name: "plan", arguments: args })
    return error ?? JSON.parse(result.messages[0].content.text)
  })

describe("arguments", () => {
  it.effect("decodes transformations, optional arguments and defaults", () =>
    Effect.gen(function*() {
      const day = "2026-01-01T00:00:00.000Z"
      expect(yield* got({ day })).toEqual({ day, mood: "calm" })
      expect(yield* got({ day, hours: "3", mood: "wild", place: "Wien", other: "x" })).toEqual({
        day,
        hours: 3,
        mood: "wild",
        place: "Wien"
      })
    }))

  for (const revision of Revision.all) {
    it.effect(`${revision} · missing required and malformed arguments: -32602`, () =>
      Effect.gen(function*() {
        for (const args of [undefined, {}, { hours: "1" }]) {
          const error = yield* got(args, revision)
          expect(error.code).toBe(-32602)
          expect(error.message).toMatch(/^Invalid arguments for prompt plan: [^]*Missing key\n {2}at \["day"\]/)
        }
        const day = "2026-01-01"
        expect((yield* got({ day, place: "x" }, revision)).message).toContain("at [\"place\"]")
        // "arguments": a record of strings.
        for (const args of [{ day, hours: 3 }, [day], "x", { day: null }]) {
          expect(yield* got(args, revision)).toMatchObject({ code: -32602 })
        }
      }))
  }

  it.effect("lists the arguments with their descriptions and whether they are required", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.server(live))
      const { prompts } = yield* client.result("prompts/list")
      expect(prompts).toEqual([{
        name: "plan",
        description: "Plans a day",
        arguments: [
          { name: "day", description: "Which day", required: true },
          { name: "hours", required: false },
          { name: "mood", title: "Mood", required: false },
          { name: "place", description: "Where", required: false }
        ]
      }])
    }))
})

describe("the value of a handler", () => {
  const answer = (answer: Prompt.Answer) =>
    Effect.gen(function*() {
      const client = yield* kit.client(
        kit.server(Prompt.layer(Prompt.make("p", { description: "of the definition" }), () => Effect.succeed(answer)))
      )
      const { description, messages } = yield* client.result("prompts/get", { name: "p" })
      return { description, messages }
    })
  const message = (role: string, text: string) => ({ role, content: { type: "text", text } })

  it.effect("accepts text, messages, or the whole result", () =>
    Effect.gen(function*() {
      expect(yield* answer("hi")).toEqual({ description: "of the definition", messages: [message("user", "hi")] })
      expect(yield* answer([])).toEqual({ description: "of the definition", messages: [] })
      expect(yield* answer([Prompt.user("a"), Prompt.assistant(Content.text("b"))])).toEqual({
        description: "of the definition",
        messages: [message("user", "a"), message("assistant", "b")]
      })
      expect(yield* answer({ description: "of its own", messages: [Prompt.user("a")] })).toEqual({
        description: "of its own",
        messages: [message("user", "a")]
      })
    }))

  it.effect("answers a failure with -32603 and its message, an McpError with its code, and a defect with a reference", () =>
    kit.logged(() =>
      Effect.gen(function*() {
        const failing = (effect: Effect.Effect<never, Broken | McpError.McpError>) =>
          Effect.flatMap(
            kit.client(kit.server(Prompt.layer(Prompt.make("p"), () => effect))),
            (client) => client.error("prompts/get", { name: "p" })
          )
        expect(yield* failing(Effect.fail(new Broken({ message: "No paper" })))).toEqual({
          code: -32603,
          message: "No paper"
        })
        expect(yield* failing(Effect.fail(McpError.invalidParams("not today")))).toEqual({
          code: -32602,
          message: "not today"
        })
        const error = yield* failing(Effect.die(new Error("the secret")))
        expect(error).toEqual({ code: -32603, message: "Internal error", data: { reference: error.data.reference } })
      })
    ))
})
