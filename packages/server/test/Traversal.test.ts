/** Variables of resource templates that would leave a folder. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { posix, win32 } from "node:path"
import { leavesFolder } from "../src/internal/handlers/traversal.ts"
import * as kit from "./kit.ts"

const echo = (uriTemplate: string, options: { readonly allowTraversal?: boolean } = {}) =>
  ResourceTemplate.layer(
    ResourceTemplate.make(uriTemplate, { name: "t", ...options }),
    (values) => Effect.succeed(JSON.stringify(values))
  )

const refused: ReadonlyArray<readonly [template: string, uri: string]> = [
  ["a://{x}", "a://.."],
  ["a://{x}", "a://..%2Fetc"],
  ["a://{x}", "a://..%2fetc"],
  ["a://{x}", "a://%2e%2e%2fetc"],
  ["a://{x}", "a://b%2F..%2F..%2Fetc"],
  ["a://{x}", "a://b%2F.."],
  ["a://{x}", "a://..%5Cetc"],
  ["a://{x}", "a://%2Fetc%2Fpasswd"],
  ["a://{x}", "a://%5C%5Chost%5Cshare"],
  ["a://{x}", "a://C%3A%5CWindows"],
  ["a://{x}", "a://b%00.txt"],
  ["a://{x}", "a://%252e%252e%252fetc"],
  ["a://{x}", "a://%252Fetc"],
  ["a://{x}", "a://%25252e%25252e%25252f"],
  ["a://{x}", "a://%2525252525252e"],
  ["a://b/{+x}", "a://b/../etc"],
  ["a://b/{+x}", "a://b//etc"],
  ["a://b/{+x}", "a://b/c/..%2f..%2fetc"],
  ["a://b{/x*}", "a://b/c/../etc"],
  ["a://b{/x*}", "a://b/c/%2e%2e/etc"],
  ["a://b{/x*}", "a://b//etc"],
  ["a://{x*}", "a://b,%2Fetc"]
]

const accepted: ReadonlyArray<readonly [template: string, uri: string, values: object]> = [
  ["a://{x}", "a://report..final.txt", { x: "report..final.txt" }],
  ["a://{x}", "a://.env", { x: ".env" }],
  ["a://{x}", "a://...", { x: "..." }],
  ["a://{x}", "a://%40scope%2Fname", { x: "@scope/name" }],
  ["a://{x}", "a://100%25", { x: "100%" }],
  ["a://{x}", "a://https%3A%2F%2Fexample.com", { x: "https://example.com" }],
  ["file:///{x}", "file:///a.txt", { x: "a.txt" }],
  ["file:///{+x}", "file:///home/ada/a.txt", { x: "home/ada/a.txt" }],
  ["a://b{/x*}", "a://b/c/d", { x: ["c", "d"] }],
  ["a://b{?x}", "a://b?x=..%2Fetc", { x: "../etc" }],
  ["a://b{#x}", "a://b#/..", { x: "/.." }]
]

describe("the variables of a template", () => {
  for (const revision of [Revision.all[0]!, Revision.latest]) {
    it.effect(`${revision} · that leave a folder match no template`, () =>
      Effect.gen(function*() {
        for (const [template, uri] of refused) {
          const client = yield* kit.client(kit.server(echo(template)), revision)
          const error = yield* client.error("resources/read", { uri })
          expect(error.code, `${uri}`).toBe(revision < "2026-07-28" ? -32002 : -32602)
        }
      }))
  }

  it.effect("that stay in a folder, and those of queries and fragments, arrive unchanged", () =>
    Effect.gen(function*() {
      for (const [template, uri, values] of accepted) {
        const client = yield* kit.client(kit.server(echo(template)))
        const { contents } = yield* client.result("resources/read", { uri })
        expect(JSON.parse(contents[0].text), `${uri}`).toEqual(values)
      }
    }))

  it.effect("arrive unchanged with allowTraversal, which clients do not receive", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.server(echo("file://{+x}", { allowTraversal: true })))
      const { contents } = yield* client.result("resources/read", { uri: "file:///etc/../x" })
      expect(JSON.parse(contents[0].text)).toEqual({ x: "/etc/../x" })
      const { resourceTemplates } = yield* client.result("resources/templates/list")
      expect(resourceTemplates).toEqual([{ uriTemplate: "file://{+x}", name: "t" }])
    }))

  it.effect("are checked by each template: a later one may match", () =>
    Effect.gen(function*() {
      const both = Layer.mergeAll(echo("a://{x}"), echo("a://{y}", { allowTraversal: true }))
      const client = yield* kit.client(kit.server(both))
      const { contents } = yield* client.result("resources/read", { uri: "a://.." })
      expect(JSON.parse(contents[0].text)).toEqual({ y: ".." })
    }))
})

describe("leavesFolder", () => {
  const part = Schema.Literals([
    "..",
    ".",
    "/",
    "\\",
    "a",
    " ",
    ":",
    "C",
    "%2e",
    "%2F",
    "%5c",
    "%25",
    "%00",
    "\0",
    "%",
    "2"
  ])

  it.effect.prop(
    "accepts no value that escapes the root it is joined to",
    [Schema.Array(part)],
    ([parts]) =>
      Effect.sync(() => {
        const value = parts.join("")
        if (leavesFolder(value)) return
        for (const text of [value, value.replace(/%(2e|2f|5c|25)/gi, (code) => decodeURIComponent(code))]) {
          for (const combine of [posix.join, posix.resolve]) {
            expect(combine("/srv/files", text) + "/").toMatch(/^\/srv\/files\//)
          }
          for (const combine of [win32.join, win32.resolve]) {
            expect(combine("C:\\srv\\files", text) + "\\").toMatch(/^C:\\srv\\files\\/)
          }
        }
        expect(new URL(`https://host/files/${value.replaceAll("\\", "%5C")}`).pathname).toMatch(/^\/files\//)
      })
  )

  it("takes linear time", () => {
    expect(leavesFolder(`%${"25".repeat(5000)}2e`)).toBe(true)
    expect(leavesFolder("a/".repeat(8000))).toBe(false)
  })
})
