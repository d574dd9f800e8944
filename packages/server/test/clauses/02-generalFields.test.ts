/** The metadata of definitions besides their schemas: metadata that strict clients would refuse is never sent. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { inspect } from "node:util"
import * as kit from "../kit.ts"

const ok = Effect.succeed("ok")
const icon = (src: string) => ({ icons: [{ src }] })

/** One definition of each kind, with metadata. */
const kinds: { readonly [kind: string]: (metadata: kit.Json) => McpServer.Definitions } = {
  tool: (metadata) => Tool.layer(Tool.make("t", metadata), () => ok),
  prompt: (metadata) => Prompt.layer(Prompt.make("p", metadata), () => ok),
  resource: (metadata) => Resource.layer(Resource.make("r://r", metadata), ok),
  "resource template": (metadata) =>
    ResourceTemplate.layer(ResourceTemplate.make("r://{id}", { name: "n", ...metadata }), () => ok)
}
const all = Object.keys(kinds)
const resources = ["resource", "resource template"]

const cycle: { self?: unknown } = {}
cycle.self = cycle

const wrong: ReadonlyArray<readonly [clause: string, kinds: ReadonlyArray<string>, value: object, problem: string]> = [
  ["2025-11-25 · an icon's src is a URI", all, icon("icon.png"), "not \"icon.png\""],
  ["2025-11-25 · an icon's src is a URI", all, icon("https://example.com/a b.png"), "a b.png"],
  ["2025-11-25 · clients MUST reject icon URIs that use unsafe schemes", all, icon("javascript:alert(1)"), "https:"],
  ["2025-11-25 · clients MUST reject icon URIs that use unsafe schemes", all, icon("file:///icon.png"), "https:"],
  ["2024-11-05 · a priority is between 0 and 1", resources, { annotations: { priority: 1.5 } }, "from 0 to 1"],
  ["2024-11-05 · a priority is between 0 and 1", resources, { annotations: { priority: -1 } }, "from 0 to 1"],
  ["2024-11-05 · a priority is between 0 and 1", resources, { annotations: { priority: NaN } }, "from 0 to 1"],
  ["2025-06-18 · lastModified is ISO 8601", resources, { annotations: { lastModified: "yesterday" } }, "ISO 8601"],
  ["2025-06-18 · lastModified is ISO 8601", resources, { annotations: { lastModified: "2025-13-01" } }, "ISO 8601"],
  ["2024-11-05 · a size is in bytes", ["resource"], { size: 1.5 }, "bytes"],
  ["2024-11-05 · a size is in bytes", ["resource"], { size: -1 }, "bytes"],
  ["2024-11-05 · a size is in bytes", ["resource"], { size: Infinity }, "bytes"],
  [
    "2025-06-18 · a key of _meta: labels MUST start with a letter",
    all,
    { _meta: { "1a.b/c": 1 } },
    "is not a valid key"
  ],
  [
    "2025-06-18 · a key of _meta: names MUST end with an alphanumeric",
    all,
    { _meta: { "a.b/c-": 1 } },
    "is not a valid key"
  ],
  ["2025-06-18 · _meta is JSON", all, { _meta: { "a.b/c": cycle } }, "JSON"],
  ["2025-06-18 · _meta is JSON", all, { _meta: { "a.b/c": 1n } }, "JSON"]
]

describe("invalid metadata fails the layer", () => {
  for (const [clause, of, metadata, problem] of wrong) {
    for (const kind of of) {
      it.effect(`${clause} · ${kind}: ${inspect(metadata, { breakLength: Infinity })}`, () =>
        Effect.gen(function*() {
          const error: kit.Json = yield* kit.failure(kit.server(kinds[kind]!(metadata)) as kit.Server)
          expect(error).toMatchObject({ _tag: "DefinitionError", reason: { _tag: "InvalidValue" }, kind })
          expect(error.message).toContain(problem)
        }))
    }
  }

  it.effect("fails a definition that is added while the server runs, and does not hide the others", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server(Resource.layer(Resource.make("r://r"), ok)))
      const client = yield* Effect.provide(kit.connect(), context)
      const add = Resource.add(Resource.make("r://wrong", { size: 0.5 }), ok)
      expect(yield* Effect.provide(Effect.flip(add), context)).toMatchObject({ reason: { _tag: "InvalidValue" } })
      expect((yield* client.result("resources/list")).resources.map(({ uri }: kit.Json) => uri)).toEqual(["r://r"])
    }))

  for (const metadata of [icon("x"), { websiteUrl: "example.com" }, { websiteUrl: "https://a b" }]) {
    it.effect(`2025-11-25 · fails a server whose own description is invalid: ${JSON.stringify(metadata)}`, () =>
      Effect.gen(function*() {
        const server = McpServer.layer({ name: "mine", version: "1", ...metadata }, kinds["tool"]!({}))
        const exit = yield* Effect.exit(Effect.scoped(Layer.build(server as kit.Server)))
        expect(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "").toContain("mine cannot be served")
      }))
  }
})

const right: ReadonlyArray<object> = [
  icon("https://example.com/i.png?a=b"),
  icon("http://localhost:3000/i.png"),
  icon(`data:image/png;base64,${"A".repeat(100_000)}`),
  { annotations: { priority: 0, lastModified: "2025-01-12T15:00:58Z" } },
  { annotations: { priority: 1, lastModified: "2025-01-12" } },
  { size: 0 },
  { size: 2 ** 53 - 1 },
  { _meta: { "": 1, name: 2, "com.example/": 3, "com.example/a_b.c": { d: [null] } } }
]

for (const revision of Revision.all) {
  it.effect(`${revision} · sends allowed metadata in the form of the revision`, () =>
    Effect.gen(function*() {
      for (const metadata of right) {
        const client = yield* kit.client(
          kit.server(...all.map((kind) => kinds[kind]!(metadata))) as kit.Server,
          revision
        )
        for (
          const [kind, member] of [["tools", "tools"], ["prompts", "prompts"], ["resources", "resources"]] as const
        ) {
          expect((yield* client.result(`${kind}/list`))[member].length).toBe(1)
        }
        expect((yield* client.result("resources/templates/list")).resourceTemplates.length).toBe(1)
      }
    }))
}
