import { describe, expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import { DefinitionError } from "@skein/server/DefinitionError"
import * as ResultCache from "@skein/server/ResultCache"
import * as Retry from "@skein/server/Retry"
import * as Tool from "@skein/server/Tool"
import * as ToolVersions from "@skein/server/ToolVersions"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"
import * as support from "./middleware/support.ts"

const key = "io.github.skein-mcp/version"

const version = (name: string, options: object = {}) =>
  Tool.layer(
    Tool.make("calc", { version: name, description: `Version ${name}`, input: { n: Schema.Int }, ...options }),
    ({ n }) => Effect.succeed(`${name}: ${n}`)
  )

const call = (client: kit.Client, asked?: unknown) =>
  client.request("tools/call", {
    name: "calc",
    arguments: { n: 1 },
    ...(asked === undefined
      ? undefined
      : { _meta: { ...(client.revision === "2026-07-28" ? kit.meta() : {}), [key]: asked } })
  })

for (const revision of support.eras) {
  describe(`${revision} · versions of a tool`, () => {
    it.effect("lists the newest with all versions, and runs it, or the one that the caller names", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.server(ToolVersions.layer(version("1.9"), version("1.10"), version("1.2"))),
          revision
        )
        const { tools } = yield* client.result("tools/list")
        expect(tools).toHaveLength(1)
        expect(tools[0]).toMatchObject({
          name: "calc",
          description: "Version 1.10",
          _meta: { [key]: "1.10", "io.github.skein-mcp/versions": ["1.10", "1.9", "1.2"] }
        })
        expect((yield* call(client)).result.content[0].text).toBe("1.10: 1")
        for (const asked of ["1.2", "1.9", "1.10"]) {
          expect((yield* call(client, asked)).result.content[0].text).toBe(`${asked}: 1`)
        }
        for (const asked of ["2.0", "", 1.9, null, "__proto__", {}]) {
          expect((yield* call(client, asked)).error).toMatchObject({
            code: -32602,
            message: expect.stringContaining("of the tool calc: it has 1.10, 1.9, 1.2")
          })
        }
      }))

    it.effect("hides a version from callers that may not see it", () =>
      Effect.gen(function*() {
        const server = yield* support.build(kit.server(ToolVersions.layer(
          Catalog.visibleTo(({ principal }) => principal?.id === "ada", version("1.0")),
          version("2.0")
        )))
        const ada = yield* support.connect(server, revision, support.as("ada"))
        const bob = yield* support.connect(server, revision, support.as("bob"))
        expect((yield* call(ada, "1.0")).result.content[0].text).toBe("1.0: 1")
        expect((yield* call(bob, "1.0")).error.code).toBe(-32602)
        expect((yield* call(bob)).result.content[0].text).toBe("2.0: 1")
      }))

    it.effect("a single tool lists its version, and cached results are not those of another version", () =>
      Effect.gen(function*() {
        const readOnly = { annotations: { readOnlyHint: true } }
        const one = yield* kit.client(kit.server(version("3.1", { _meta: { "example.com/a": 1 } })), revision)
        expect((yield* one.result("tools/list")).tools[0]._meta).toEqual({ "example.com/a": 1, [key]: "3.1" })
        const cached = yield* kit.client(
          kit.server(
            Retry.layer(),
            ResultCache.layer(),
            ToolVersions.layer(version("1.0", readOnly), version("2.0", readOnly))
          ),
          revision
        )
        for (let n = 0; n < 2; n++) {
          expect((yield* call(cached)).result.content[0].text).toBe("2.0: 1")
          expect((yield* call(cached, "1.0")).result.content[0].text).toBe("1.0: 1")
        }
      }))
  })
}

describe("definitions", () => {
  it.effect("fail without versions, with two of the same, with another name and with tasks", () =>
    Effect.gen(function*() {
      const other = Tool.layer(Tool.make("other", { version: "1" }), () => Effect.void)
      const bare = Tool.layer(Tool.make("calc"), () => Effect.void)
      const cases = [
        [[version("1"), bare], "has no version"],
        [[version("1"), version("1")], "has two versions 1"],
        [[version("1"), other], "must have its name"],
        [[version("1", { execution: { taskSupport: "optional" } })], "cannot run as a task"],
        [[], "at least one tool"]
      ] as const
      for (const [layers, message] of cases) {
        const error = yield* kit.failure(kit.server(ToolVersions.layer(...layers)))
        expect(error).toBeInstanceOf(DefinitionError)
        expect(String((error as DefinitionError).message)).toContain(message)
      }
    }))

  it("sort versions by their numbers, with suffixes before releases", () => {
    const sorted = ["v0.9", "1.0-alpha", "1.0-beta", "1.0", "1.0.1", "1.2", "1.10", "2", "2025-12-31", "2026-01-31"]
    expect(sorted.toReversed().toSorted(ToolVersions.compare)).toEqual(sorted)
  })
})
