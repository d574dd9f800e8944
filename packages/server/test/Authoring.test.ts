/** The metadata of a definition besides its schema, its visibility, and its changes while the server runs. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Catalog from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as kit from "./kit.ts"

const icons = [{ src: "https://example.com/a.png", mimeType: "image/png" }]
const ok = () => Effect.succeed("ok")

describe("the description of a tool", () => {
  const tool = Tool.make("all", {
    title: "All",
    description: "Has all",
    icons,
    annotations: { title: "A", readOnlyHint: true, openWorldHint: false },
    execution: { taskSupport: "optional" },
    visible: () => true,
    _meta: { "example.com/a": 1 }
  })

  for (const revision of Revision.all) {
    it.effect(`${revision} · contains the members of the revision and no others`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(Tool.layer(tool, ok)), revision)
        const { tools: [listed] } = yield* client.result("tools/list")
        expect(listed).toEqual({
          name: "all",
          description: "Has all",
          inputSchema: { type: "object", additionalProperties: false },
          ...(revision >= "2025-03-26" && { annotations: tool.options.annotations }),
          ...(revision >= "2025-06-18" && { title: "All", _meta: { "example.com/a": 1 } }),
          ...(revision >= "2025-11-25" && { icons }),
          // "execution" was added with the tasks of 2025-11-25 and removed with them.
          ...(revision === "2025-11-25" && { execution: { taskSupport: "optional" } })
        })
      }))
  }
})

describe("the descriptions of resources and templates", () => {
  const annotations = { audience: ["user"], priority: 0.5, lastModified: "2026-01-01T00:00:00Z" } as const
  const metadata = { title: "Title", description: "What it is", mimeType: "image/png", annotations, icons }
  const resource = Resource.make("a://logo", {
    ...metadata,
    name: "logo",
    size: 3,
    visible: () => true,
    ttlMs: 1,
    _meta: { "example.com/a": 1 }
  })
  const template = ResourceTemplate.make("b://{x}", {
    ...metadata,
    name: "b",
    visible: () => true,
    ttlMs: 1,
    cacheScope: "public"
  })
  const server = kit.server(
    Resource.layer(resource, Effect.succeed(new Uint8Array([1, 2, 3]))),
    ResourceTemplate.layer(template, ({ x }) => Effect.succeed(new TextEncoder().encode(x)))
  )

  for (const revision of Revision.all) {
    it.effect(`${revision} · contain the members of the revision and no others; bytes are base64`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server, revision)
        const { resources: [listed] } = yield* client.result("resources/list")
        const known = {
          description: "What it is",
          mimeType: "image/png",
          annotations: revision >= "2025-06-18" ? annotations : { audience: ["user"], priority: 0.5 },
          ...(revision >= "2025-06-18" && { title: "Title" }),
          ...(revision >= "2025-11-25" && { icons })
        }
        expect(listed).toEqual({
          ...known,
          uri: "a://logo",
          name: "logo",
          size: 3,
          ...(revision >= "2025-06-18" && { _meta: { "example.com/a": 1 } })
        })
        const { resourceTemplates: [also] } = yield* client.result("resources/templates/list")
        expect(also).toEqual({ ...known, uriTemplate: "b://{x}", name: "b" })
        expect((yield* client.result("resources/read", { uri: "a://logo" })).contents).toEqual([
          { uri: "a://logo", mimeType: "image/png", blob: "AQID" }
        ])
        expect((yield* client.result("resources/read", { uri: "b://a" })).contents).toEqual([
          { uri: "b://a", mimeType: "image/png", blob: "YQ==" }
        ])
      }))
  }
})

describe("structured content that is not an object", () => {
  const list = { type: "array", items: { type: "integer" } } as const
  const tools = [
    Tool.layer(Tool.make("effect", { output: Schema.Array(Schema.Int) }), () => Effect.succeed([1, 2])),
    Tool.layer(
      Tool.make("raw", { output: JsonSchema.make<ReadonlyArray<number>>(list) }),
      () => Effect.succeed([1, 2])
    ),
    Tool.layer(
      Tool.make("mixed", { output: Schema.NullOr(Schema.Struct({ a: Schema.Int })) }),
      () => Effect.succeed({ a: 1 })
    )
  ]

  for (const revision of Revision.all) {
    it.effect(`${revision} · is any JSON value since 2026-07-28, and its text before`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(...tools), revision)
        const { tools: listed } = yield* client.result("tools/list")
        for (const { name, outputSchema } of listed) {
          expect([name, outputSchema !== undefined]).toEqual([name, revision === "2026-07-28"])
        }
        for (const name of ["effect", "raw"]) {
          const result = yield* client.call(name)
          expect(result.content).toEqual([{ type: "text", text: "[1,2]" }])
          expect(result.structuredContent).toEqual(revision === "2026-07-28" ? [1, 2] : undefined)
        }
        // An object stays structured content, even if the schema allows other types too.
        const mixed = yield* client.call("mixed")
        expect(mixed.structuredContent).toEqual(revision >= "2025-06-18" ? { a: 1 } : undefined)
      }))
  }
})

describe("x-mcp-header", () => {
  const inputs: ReadonlyArray<readonly [string, Tool.AnySchema]> = [
    ["an Effect Schema", {
      region: Schema.String.annotate({ "x-mcp-header": "Region" }),
      at: Schema.optionalKey(Schema.Struct({ n: Schema.Int.annotate({ "x-mcp-header": "Zone" }) }))
    }],
    [
      "JSON Schema",
      JsonSchema.make({
        type: "object",
        properties: {
          region: { type: "string", "x-mcp-header": "Region" },
          at: { type: "object", properties: { n: { type: "integer", "x-mcp-header": "Zone" } } }
        }
      })
    ]
  ]

  for (const [what, input] of inputs) {
    it.effect(`2026-07-28 · ${what}: is in the listed schema, and in the headers that the transport expects`, () =>
      Effect.gen(function*() {
        const context = yield* Layer.build(kit.server(Tool.layer(Tool.make("t", { input }), ok)))
        const client = yield* Effect.provide(kit.connect(), context)
        const { tools: [{ inputSchema }] } = yield* client.result("tools/list")
        expect(inputSchema.properties.region).toMatchObject({ type: "string", "x-mcp-header": "Region" })
        expect(inputSchema.properties.at.properties.n).toMatchObject({ type: "integer", "x-mcp-header": "Zone" })
        const { tools } = yield* Effect.provide(Catalog.Catalog, context)
        expect(tools.get("t")?.headers?.map(({ header, path }) => [header, ...path])).toEqual([
          ["Mcp-Param-Region", "region"],
          ["Mcp-Param-Zone", "at", "n"]
        ])
      }))
  }

  for (
    const [rule, fields] of [
      ["MUST be a token", { a: Schema.String.annotate({ "x-mcp-header": "my region" }) }],
      ["MUST NOT be empty", { a: Schema.String.annotate({ "x-mcp-header": "" }) }],
      ["MUST be a string", { a: Schema.String.annotate({ "x-mcp-header": 1 }) }],
      ["MUST be unique without regard to case", {
        a: Schema.String.annotate({ "x-mcp-header": "A" }),
        b: Schema.String.annotate({ "x-mcp-header": "a" })
      }],
      ["MUST be of a primitive type", { a: Schema.Array(Schema.String).annotate({ "x-mcp-header": "A" }) }],
      ["MUST NOT be on a number", { a: Schema.Finite.annotate({ "x-mcp-header": "A" }) }],
      ["MUST be reached through properties alone", {
        a: Schema.Array(Schema.Struct({ b: Schema.String.annotate({ "x-mcp-header": "A" }) }))
      }]
    ] as ReadonlyArray<readonly [string, Tool.AnySchema]>
  ) {
    it.effect(`2026-07-28 · it ${rule}: otherwise the layer fails, and names the tool`, () =>
      Effect.gen(function*() {
        const bad = Tool.layer(Tool.make("bad", { input: fields }), ok)
        const error = yield* kit.failure(kit.server(Tool.layer(Tool.make("good"), ok), bad))
        expect(error).toMatchObject({
          _tag: "DefinitionError",
          reason: { _tag: "InvalidSchema" },
          kind: "tool",
          definition: "bad"
        })
        expect((error as DefinitionError).message).toMatch(
          /^The tool "bad" has an invalid input schema: .*(x-mcp-header|Mcp-Param)/
        )
      }))
  }
})

describe("a definition that fails", () => {
  it.effect("does not hide the others when it is added while the server runs", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server(Tool.layer(Tool.make("good"), ok)))
      const client = yield* Effect.provide(kit.connect(), context)
      const bad = Tool.make("bad", { input: JsonSchema.make({ type: "object", $ref: "https://example.com/a" }) })
      const error = yield* Effect.flip(Effect.provide(Effect.scoped(Tool.add(bad, ok)), context))
      expect(error).toMatchObject({ reason: { _tag: "InvalidSchema" }, definition: "bad" })
      expect((yield* client.result("tools/list")).tools.map(({ name }: kit.Json) => name)).toEqual(["good"])
      expect((yield* client.call("good")).content[0].text).toBe("ok")
    }))
})

describe("entries that some callers may see", () => {
  const some = { visible: ({ info }: { readonly info: kit.Json }) => info?.name !== "kit" }
  const server = kit.server(
    Tool.layer(Tool.make("all"), ok),
    Tool.layer(Tool.make("some", some), ok),
    Prompt.layer(Prompt.make("some", some), () => Effect.succeed("")),
    Resource.layer(Resource.make("a://some", some), Effect.succeed("")),
    ResourceTemplate.layer(ResourceTemplate.make("b://{x}", { name: "b", ...some }), () => Effect.succeed(""))
  )

  for (const revision of Revision.all) {
    it.effect(`${revision} · do not exist for other callers, neither in lists nor by name`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(server, revision)
        expect((yield* client.result("tools/list")).tools.map(({ name }: kit.Json) => name)).toEqual(["all"])
        expect((yield* client.result("prompts/list")).prompts).toEqual([])
        expect((yield* client.result("resources/list")).resources).toEqual([])
        expect((yield* client.result("resources/templates/list")).resourceTemplates).toEqual([])
        // Exactly the response for an entry that never existed.
        for (
          const [method, hidden, absent] of [
            ["tools/call", { name: "some" }, { name: "none" }],
            ["prompts/get", { name: "some" }, { name: "none" }],
            ["resources/read", { uri: "a://some" }, { uri: "a://none" }],
            ["resources/read", { uri: "b://some" }, { uri: "c://none" }]
          ] as const
        ) {
          const { code, message } = yield* client.error(method, hidden)
          const other = yield* client.error(method, absent)
          expect([code, message.replaceAll("some", "none").replace("b://", "c://")]).toEqual([
            other.code,
            other.message
          ])
        }
      }))
  }
})

describe("definitions that change while the server runs", () => {
  const template = ResourceTemplate.make("b://{x}", { name: "b" })
  const texts = (client: kit.Client): Effect.Effect<ReadonlyArray<string>> =>
    Effect.gen(function*() {
      const tool = yield* client.request("tools/call", { name: "t" })
      const prompt = yield* client.request("prompts/get", { name: "p" })
      const resource = yield* client.request("resources/read", { uri: "a://a" })
      const templated = yield* client.request("resources/read", { uri: "b://b" })
      return [
        tool.result?.content[0].text,
        prompt.result?.messages[0].content.text,
        resource.result?.contents[0].text,
        templated.result?.contents[0].text
      ]
    })
  const with_ = (how: "add" | "replace", text: string) => {
    const answer = Effect.succeed(text)
    return Effect.all([
      Tool[how](Tool.make("t"), () => answer),
      Prompt[how](Prompt.make("p"), () => answer),
      Resource[how](Resource.make("a://a"), answer),
      ResourceTemplate[how](template, () => answer)
    ])
  }

  it.effect("are added, replaced, and restored when the scope closes", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server())
      const client = yield* Effect.provide(kit.connect(), context)
      const first = yield* Scope.make()
      yield* Effect.provide(Scope.provide(with_("add", "one"), first), context)
      expect(yield* texts(client)).toEqual(["one", "one", "one", "one"])
      const second = yield* Scope.make()
      yield* Effect.provide(Scope.provide(with_("replace", "two"), second), context)
      expect(yield* texts(client)).toEqual(["two", "two", "two", "two"])
      yield* Scope.close(second, Exit.void)
      expect(yield* texts(client)).toEqual(["one", "one", "one", "one"])
      yield* Scope.close(first, Exit.void)
      expect(yield* texts(client)).toEqual([undefined, undefined, undefined, undefined])
    }))

  it.effect("fail with DuplicateName if added twice, and with NotFound if replaced without an entry", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server())
      const twice = Effect.andThen(with_("add", "one"), with_("add", "two"))
      expect(yield* Effect.flip(Effect.provide(Effect.scoped(twice), context))).toMatchObject({
        reason: { _tag: "DuplicateName" }
      })
      for (const one of [Tool.replace(Tool.make("t"), ok), Resource.replace(Resource.make("a://a"), ok())]) {
        expect(yield* Effect.flip(Effect.provide(Effect.scoped(one), context))).toMatchObject({
          reason: { _tag: "NotFound" }
        })
      }
    }))

  it.effect("are added by a handler, with its services", () =>
    Effect.gen(function*() {
      const more = Tool.layer(Tool.make("more"), () =>
        Catalog.persistent(Tool.add(Tool.make("t"), () => Effect.succeed("late"))).pipe(Effect.as("added")))
      const client = yield* kit.client(kit.server(more))
      expect((yield* client.call("more")).content[0].text).toBe("added")
      expect((yield* client.call("t")).content[0].text).toBe("late")
      // A failure of the change is a failure of the tool.
      expect(yield* client.call("more")).toMatchObject({ isError: true })
    }))
})
