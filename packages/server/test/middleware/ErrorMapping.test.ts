import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as ErrorMapping from "@skein/server/ErrorMapping"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

class Database extends Data.TaggedError("Database")<{ readonly message: string }> {}

const database = new Database({ message: "password hunter2 was refused" })
const dead = new Error("a secret")

const definitions = [
  Tool.layer(Tool.make("fails"), () => Effect.fail(database)),
  Tool.layer(Tool.make("dies"), () => Effect.die(dead)),
  Tool.layer(Tool.make("refuses"), () => Effect.fail(McpError.other(7, "No"))),
  Tool.layer(Tool.make("made"), () => Effect.succeed(Tool.result({ content: "made", isError: true }))),
  Tool.layer(Tool.make("strict", { input: { n: Schema.Int } }), () => Effect.succeed("x")),
  Resource.layer(Resource.make("a://fails"), Effect.fail(database)),
  Prompt.layer(Prompt.make("fails"), () => Effect.die(dead))
] as const

const server = (map: (failure: ErrorMapping.Failure) => ErrorMapping.Mapped, options: object = {}) =>
  kit.server(ErrorMapping.layer({ map, ...options }), ...definitions)

for (const revision of support.eras) {
  describe(`${revision} · error mapping`, () => {
    it.effect("sees the failure, the defect or the error of each handler, and nothing else", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const client = yield* kit.client(
          server(({ error, isDefect, kind, name }) => {
            seen.push([kind, name, error, isDefect])
            return ErrorMapping.unchanged
          }),
          revision
        )
        const call = (name: string) => client.request("tools/call", { name })
        expect((yield* call("fails")).result).toMatchObject({ isError: true, content: [{ text: database.message }] })
        kit.referenceOf((yield* call("dies")).result, "dies")
        expect((yield* call("refuses")).error).toMatchObject({ code: 7, message: "No" })
        yield* call("made")
        yield* call("strict")
        yield* call("unknown")
        expect((yield* client.error("resources/read", { uri: "a://fails" })).message).toBe(database.message)
        yield* client.error("prompts/get", { name: "fails" })
        expect(seen).toEqual([
          ["tool", "fails", database, false],
          ["tool", "dies", dead, true],
          ["tool", "refuses", McpError.other(7, "No"), false],
          ["resource", "a://fails", database, false],
          ["prompt", "fails", dead, true]
        ])
      }))

    it.effect("rewrites messages, and logs the cause with the reference", () =>
      kit.logged((lines) =>
        Effect.gen(function*() {
          const client = yield* kit.client(
            server(({ reference }) => ErrorMapping.message(`Try again later (${reference})`)),
            revision
          )
          const reference = /^Try again later \(([\w-]{36})\)$/
          const found: Array<string> = []
          for (const name of ["fails", "dies", "refuses"]) {
            const result = yield* client.call(name)
            expect(result.isError).toBe(true)
            found.push(reference.exec(result.content[0].text)![1]!)
          }
          for (
            const [method, params] of [["resources/read", { uri: "a://fails" }], ["prompts/get", {
              name: "fails"
            }]] as const
          ) {
            const error = yield* client.error(method, params)
            expect(error.code).toBe(-32603)
            found.push(reference.exec(error.message)![1]!)
          }
          expect(new Set(found).size).toBe(5)
          for (const each of found) expect(lines.filter((line) => line.includes(each))).toHaveLength(1)
          expect(lines.find((line) => line.includes(found[0]!))).toContain("hunter2")
          expect(lines.find((line) => line.includes(found[1]!))).toContain("a secret")
          expect(JSON.stringify(client.received)).not.toMatch(/hunter2|a secret/)
        })
      ))

    it.effect("hides failures behind a reference, and chooses the codes of errors", () =>
      kit.logged((lines) =>
        Effect.gen(function*() {
          const client = yield* kit.client(
            server(({ error }) => error === database ? ErrorMapping.hidden : McpError.other(-31_003, "Forbidden")),
            revision
          )
          const reference = yield* client.defect("fails")
          expect(lines.find((line) => line.includes(reference))).toContain("hunter2")
          for (const name of ["dies", "refuses"]) {
            expect(yield* client.error("tools/call", { name })).toMatchObject({ code: -31_003, message: "Forbidden" })
          }
          expect(JSON.stringify(client.received)).not.toContain("hunter2")
        })
      ))

    it.effect("applies to some tools, and not to resources and prompts if it must not; the last one is asked first", () =>
      Effect.gen(function*() {
        const some = server(() => ErrorMapping.message("mapped"), { tools: ["dies"], others: false })
        const client = yield* kit.client(some, revision)
        expect((yield* client.call("fails")).content[0].text).toBe(database.message)
        expect((yield* client.call("dies")).content[0].text).toBe("mapped")
        expect((yield* client.error("resources/read", { uri: "a://fails" })).message).toBe(database.message)
        const both = kit.server(
          ErrorMapping.layer({ map: ({ error }) => ErrorMapping.message(`outer ${(error as Error).message}`) }),
          ErrorMapping.layer({ map: () => ErrorMapping.message("inner") }),
          ...definitions
        )
        expect((yield* (yield* kit.client(both, revision)).call("fails")).content[0].text).toBe("outer inner")
      }))

    it.effect("answers an exception of the function as a defect", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          server(() => {
            throw new Error("in map")
          }),
          revision
        )
        yield* client.defect("fails")
      }))
  })
}
