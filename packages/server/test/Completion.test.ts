/** `completion/complete`: suggestions for the arguments of prompts and the variables of templates. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Completion from "@skein/server/Completion"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

class Frameworks extends Context.Service<Frameworks, { readonly of: (language: string) => ReadonlyArray<string> }>()(
  "completion/Frameworks"
) {}
class Offline extends Data.TaggedError("Offline")<{ readonly message: string }> {}

const review = Prompt.make("review", {
  arguments: {
    language: Schema.String,
    framework: Schema.optionalKey(Schema.String),
    tone: Schema.optional(Schema.Literals(["kind", "strict"])),
    style: Schema.Literal("short"),
    number: Schema.optionalKey(Schema.NumberFromString),
    broken: Schema.optionalKey(Schema.String),
    own: Schema.optionalKey(Schema.String),
    plain: Schema.optionalKey(Schema.String)
  }
})

const live = Prompt.layer(review, () => Effect.succeed("ok"), {
  complete: {
    language: ["Ruby", "python", "TypeScript", "jython", "pyret"],
    framework: (value, { language }) =>
      Effect.map(Frameworks, ({ of }) => Completion.match(value, of(language ?? "none"))),
    broken: Effect.fail(new Offline({ message: "The index is offline" })),
    own: Effect.fail(McpError.other(42, "mine")),
    plain: (value) => [`${value}!`]
  }
})

const file = ResourceTemplate.layer(
  ResourceTemplate.make("file:///{project}/{+path}", {
    name: "file",
    variables: { project: Schema.Literals(["web", "api"]), path: Schema.String }
  }),
  () => Effect.succeed(""),
  { complete: { path: Effect.succeed(["src/index.ts", "README.md"]) } }
)

const server = Layer.provide(
  kit.server(
    live,
    file,
    Resource.layer(Resource.make("file:///web/known"), Effect.succeed("")),
    ResourceTemplate.layer(ResourceTemplate.make("plain://{a}", { name: "plain" }), () => Effect.succeed("")),
    Prompt.layer(
      Prompt.make("hidden", { visible: () => false, arguments: { a: Schema.Literal("x") } }),
      () => Effect.succeed("")
    ),
    ResourceTemplate.layer(
      ResourceTemplate.make("hidden://{a}", { name: "h", visible: () => false, variables: { a: Schema.Literal("x") } }),
      () => Effect.succeed("")
    )
  ),
  Layer.succeed(Frameworks, { of: (language) => language === "python" ? ["flask", "django"] : [] })
)

const prompt = (name: string, argument: string, value: string, context?: kit.Json) => ({
  ref: { type: "ref/prompt", name },
  argument: { name: argument, value },
  ...(context === undefined ? undefined : { context: { arguments: context } })
})
const resource = (uri: string, argument: string, value: string) => ({
  ref: { type: "ref/resource", uri },
  argument: { name: argument, value }
})

const complete = (client: kit.Client, params: kit.Json) =>
  Effect.map(client.result("completion/complete", params), ({ completion }) => completion)
const values = (client: kit.Client, params: kit.Json) => Effect.map(complete(client, params), ({ values }) => values)

describe("suggestions", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · ranks a list: first prefixes, then substrings, then entries with the same letters`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server, revision)
        expect(yield* complete(client, prompt("review", "language", "py"))).toEqual({
          values: ["python", "pyret"],
          total: 2,
          hasMore: false
        })
        expect(yield* values(client, prompt("review", "language", "pt"))).toEqual(["TypeScript", "python", "pyret"])
        expect(yield* values(client, prompt("review", "language", "YT"))).toEqual([
          "python",
          "jython",
          "TypeScript",
          "pyret"
        ])
        expect(yield* values(client, prompt("review", "language", ""))).toHaveLength(5)
        expect(yield* values(client, prompt("review", "language", "cobol"))).toEqual([])
      }))
  }

  it.effect("passes the other arguments to a function, also in revisions that are older than they", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server, "2025-06-18")
      expect(yield* values(client, prompt("review", "framework", "f", { language: "python" }))).toEqual(["flask"])
      expect(yield* values(client, prompt("review", "framework", "f"))).toEqual([])
      const older = yield* kit.client(server, "2025-03-26")
      expect(yield* values(older, prompt("review", "framework", "f", { language: "python" }))).toEqual(["flask"])
    }))

  it.effect("returns the list of a function unchanged", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server)
      expect(yield* values(client, prompt("review", "plain", "abc"))).toEqual(["abc!"])
    }))

  it.effect("completes a schema of literals automatically", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server)
      expect(yield* values(client, prompt("review", "tone", ""))).toEqual(["kind", "strict"])
      expect(yield* values(client, prompt("review", "tone", "s"))).toEqual(["strict"])
      expect(yield* values(client, prompt("review", "style", "s"))).toEqual(["short"])
      expect(yield* values(client, resource("file:///{project}/{+path}", "project", "a"))).toEqual(["api"])
    }))

  it.effect("completes a schema of an enum automatically", () =>
    Effect.gen(function*() {
      const sizes = Schema.Enum({ Small: "small", Large: "large" })
      const cup = Prompt.layer(Prompt.make("cup", { arguments: { size: sizes } }), () => Effect.succeed("ok"))
      const client = yield* kit.client(kit.server(cup))
      expect(yield* values(client, prompt("cup", "size", "l"))).toEqual(["large", "small"])
    }))

  it.effect("completes the variables of a template, by its text or by a matching URI", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server)
      expect(yield* values(client, resource("file:///{project}/{+path}", "path", "read"))).toEqual(["README.md"])
      expect(yield* values(client, resource("file:///web/x", "path", "src"))).toEqual(["src/index.ts"])
    }))

  it.effect("2025-11-25 · \"Maximum 100 items per response\", with the total and whether there are more", () =>
    Effect.gen(function*() {
      const all = Array.from({ length: 250 }, (_, i) => `v${i}`)
      const many = Prompt.make("many", { arguments: { a: Schema.String } })
      const client = yield* kit.client(
        kit.server(Prompt.layer(many, () => Effect.succeed(""), { complete: { a: all } })),
        "2025-11-25"
      )
      expect(yield* complete(client, prompt("many", "a", ""))).toEqual({
        values: all.slice(0, 100),
        total: 250,
        hasMore: true
      })
      const begin = ["v24", ...Array.from({ length: 10 }, (_, i) => `v24${i}`)]
      expect(yield* complete(client, prompt("many", "a", "v24"))).toEqual({
        values: [...begin, "v124", "v204", "v214", "v224", "v234"],
        total: 16,
        hasMore: false
      })
    }))

  it.effect("accepts a long typed text", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server)
      expect(yield* values(client, prompt("review", "language", "p".repeat(1_000_000)))).toEqual([])
    }))
})

describe("requests without suggestions", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · responds with -32602 to an unknown or hidden prompt, template or argument`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server, revision)
        for (
          const [params, message] of [
            [prompt("none", "a", ""), "Unknown prompt: none"],
            [prompt("hidden", "a", ""), "Unknown prompt: hidden"],
            [resource("none://{a}", "a", ""), "Unknown resource template: none://{a}"],
            [resource("hidden://{a}", "a", ""), "Unknown resource template: hidden://{a}"],
            [resource("hidden://b", "a", ""), "Unknown resource template: hidden://b"],
            [prompt("review", "none", ""), expect.stringMatching(/^Unknown argument: none; it has \w+/)],
            [prompt("review", "__proto__", ""), expect.stringMatching(/^Unknown argument: __proto__; it has \w+/)],
            [resource("plain://{a}", "b", ""), "Unknown argument: b; it has a"]
          ] as const
        ) {
          expect(yield* client.error("completion/complete", params)).toMatchObject({ code: -32602, message })
        }
      }))

    it.effect(`${revision} · returns no suggestion for an argument without a source`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server, revision)
        const none = { values: [], total: 0, hasMore: false }
        expect(yield* complete(client, prompt("review", "number", "1"))).toEqual(none)
        expect(yield* complete(client, resource("plain://{a}", "a", ""))).toEqual(none)
      }))

    it.effect(`${revision} · "Internal errors: -32603": the failure of a source`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server, revision)
        const failed = yield* client.error("completion/complete", prompt("review", "broken", ""))
        expect(failed).toEqual({ code: -32603, message: "The index is offline" })
        const own = yield* client.error("completion/complete", prompt("review", "own", ""))
        expect(own).toEqual({ code: 42, message: "mine" })
      }))

    it.effect(`${revision} · "Method not found: -32601 (Capability not supported)": a server without sources`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.server(Prompt.layer(Prompt.make("p", { arguments: { a: Schema.String } }), () => Effect.succeed(""))),
          revision
        )
        expect((yield* client.error("completion/complete", prompt("p", "a", ""))).code).toBe(-32601)
      }))
  }

  it.effect("returns no suggestion for a resource without a template", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server)
      const error = yield* client.error("completion/complete", resource("file:///web/known", "path", ""))
      expect(error).toMatchObject({ code: -32602, message: "Unknown argument: path; it has none" })
    }))
})

describe("the capability", () => {
  const declared = (client: kit.Client): Effect.Effect<kit.Json> =>
    client.revision === "2026-07-28"
      ? Effect.map(client.result("server/discover"), ({ capabilities }) => capabilities.completions)
      : Effect.map(client.requestRaw("initialize", kit.hello(client.revision)), ({ result }) =>
        result.capabilities.completions)

  for (const revision of Revision.all) {
    it.effect(`${revision} · "Servers that support completions MUST declare the completions capability", since 2025-03-26`, () =>
      Effect.gen(function*() {
        const linked = (layer: kit.Server) =>
          Effect.flatMap(Effect.orDie(Layer.build(layer)), (context) => Effect.provide(kit.link(revision), context))
        expect(yield* declared(yield* linked(server))).toEqual(revision === "2024-11-05" ? undefined : {})
        expect(yield* declared(yield* linked(kit.server(Prompt.layer(Prompt.make("p"), () => Effect.succeed(""))))))
          .toBeUndefined()
      }))
  }
})
