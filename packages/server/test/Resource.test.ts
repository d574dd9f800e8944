import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

/** The variables that a template's reader receives for a URI, as JSON, or the error. */
const read = (uri: string, ...definitions: ReadonlyArray<McpServer.Definitions>) =>
  Effect.gen(function*() {
    const client = yield* kit.client(kit.server(...definitions) as kit.Server)
    const { error, result } = yield* client.request("resources/read", { uri })
    return error ?? JSON.parse(result.contents[0].text)
  })

const echo = <const T extends string>(text: T) =>
  ResourceTemplate.layer(
    ResourceTemplate.make(text, { name: text }),
    (variables, uri) => Effect.succeed(JSON.stringify({ variables, uri }))
  )

describe("templates", () => {
  for (
    const [template, uri, variables] of [
      ["notes://{id}", "notes://7", { id: "7" }],
      ["notes://{id}", "notes://a%2Fb%20c", { id: "a/b c" }],
      ["files://{+path}", "files://a/b/c.txt", { path: "a/b/c.txt" }],
      ["files:/{/path*}", "files://a/b", { path: ["a", "b"] }],
      ["find://all{?q,limit}", "find://all?limit=3", { limit: "3" }],
      ["find://all{?q,limit}", "find://all", {}],
      ["tags://{tag*}", "tags://a,b", { tag: ["a", "b"] }]
    ] as const
  ) {
    it.effect(`${template} reads ${uri}`, () =>
      Effect.gen(function*() {
        expect(yield* read(uri, echo(template))).toEqual({ variables, uri })
      }))
  }

  const byId = ResourceTemplate.layer(
    ResourceTemplate.make("notes://{id}{?full}", {
      name: "by id",
      variables: {
        id: Schema.NumberFromString.check(Schema.isInt()),
        full: Schema.optionalKey(Schema.Literals(["yes", "no"]))
      }
    }),
    ({ full, id }) => Effect.succeed(JSON.stringify({ next: id + 1, full: full ?? null }))
  )

  it.effect("decodes the variables by their schemas", () =>
    Effect.gen(function*() {
      expect(yield* read("notes://7", byId)).toEqual({ next: 8, full: null })
      expect(yield* read("notes://7?full=yes", byId)).toEqual({ next: 8, full: "yes" })
    }))

  it.effect("a URI whose variables do not match the schemas is tried with the next template, and is not found after the last one", () =>
    Effect.gen(function*() {
      for (const uri of ["notes://x", "notes://1.5", "notes://1?full=maybe"]) {
        expect(yield* read(uri, byId)).toMatchObject({ code: -32602, data: { uri } })
      }
      expect(yield* read("notes://x", byId, echo("{+any}"))).toMatchObject({ variables: { any: "notes://x" } })
      expect(yield* read("notes://7", byId, echo("{+any}"))).toMatchObject({ next: 8 })
    }))

  for (const revision of Revision.all) {
    it.effect(`${revision} · a URI without a match is not found, with the code of the revision`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(echo("notes://{id}")), revision)
        expect(yield* client.error("resources/read", { uri: "notes://a/b" })).toEqual({
          code: revision === "2026-07-28" ? -32602 : -32002,
          message: "Resource not found",
          data: { uri: "notes://a/b" }
        })
        expect(yield* client.error("resources/read", {})).toMatchObject({ code: -32602 })
        expect(yield* client.error("resources/read", { uri: 7 })).toMatchObject({ code: -32602 })
      }))
  }

  it.effect("reads a resource with the URI first, then the templates in the order of the definitions", () =>
    Effect.gen(function*() {
      const own = Resource.layer(Resource.make("a://1"), Effect.succeed("\"own\""))
      const templates = [echo("a://{y}"), echo("a://{x}"), echo("{+z}")]
      expect(yield* read("a://1", ...templates, own)).toBe("own")
      expect(yield* read("a://2", ...templates, own)).toMatchObject({ variables: { y: "2" } })
      expect(yield* read("a://2/3", ...templates, own)).toMatchObject({ variables: { z: "a://2/3" } })
    }))

  for (const text of ["a://{", "a://{x}{y}", "a://{.x}", "a://{x:3}", "a://{x}/{x}"]) {
    it.effect(`a template that cannot be matched fails the layer, and is named: ${text}`, () =>
      Effect.gen(function*() {
        const error = yield* kit.failure(kit.server(echo(text)))
        expect(error).toMatchObject({
          _tag: "DefinitionError",
          reason: { _tag: "InvalidUriTemplate" },
          kind: "resource template",
          definition: text
        })
        expect(error.message).toContain(JSON.stringify(text))
      }))
  }
})

describe("readers", () => {
  const setUp = (body: Effect.Effect<Resource.Answer, Broken | McpError.McpError>, revision: Revision.Revision) =>
    kit.client(
      kit.server(
        Resource.layer(Resource.make("a://own"), body),
        ResourceTemplate.layer(ResourceTemplate.make("t://{x}", { name: "t" }), () => body)
      ),
      revision
    )
  for (const revision of Revision.all) {
    it.effect(`${revision} · a failure of a reader is -32603 with its message, and an McpError keeps its code`, () =>
      Effect.gen(function*() {
        for (const uri of ["a://own", "t://x"]) {
          const broken = yield* setUp(Effect.fail(new Broken({ message: "No disk" })), revision)
          expect(yield* broken.error("resources/read", { uri })).toEqual({ code: -32603, message: "No disk" })
          const gone = yield* setUp(Effect.fail(Resource.notFound(uri)), revision)
          expect(yield* gone.error("resources/read", { uri })).toMatchObject({
            code: revision === "2026-07-28" ? -32602 : -32002
          })
          const other = yield* setUp(Effect.fail(McpError.other(42, "mine")), revision)
          expect(yield* other.error("resources/read", { uri })).toEqual({ code: 42, message: "mine" })
        }
      }))
  }

  it.effect("answers a defect with -32603 and a reference only", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const client = yield* setUp(Effect.die(new Error("the secret")), "2026-07-28")
        for (const uri of ["a://own", "t://x"]) {
          const error = yield* client.error("resources/read", { uri })
          expect(error).toEqual({ code: -32603, message: "Internal error", data: { reference: error.data.reference } })
        }
        expect(lines.join()).toContain("the secret")
      })
    ))

  it.effect("reads a resource each time it is requested", () =>
    Effect.gen(function*() {
      let reads = 0
      const client = yield* setUp(Effect.sync(() => String(++reads)), "2026-07-28")
      for (const n of ["1", "2"]) {
        expect((yield* client.result("resources/read", { uri: "a://own" })).contents[0].text).toBe(n)
      }
    }))
})
