/** `Catalog.guarded`: definitions that some callers see and may not use. */
import { expect, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as McpError from "@skein/server/McpError"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { modern, post, serve } from "./http/kit.ts"

const named = (name: string) => (): McpError.McpError => McpError.other(403, name)
const tool = (name: string) => Tool.layer(Tool.make(name, { input: { n: Schema.Int } }), () => Effect.succeed(name))

it.live("refuses a call before its arguments are decoded, by the innermost guard that refuses it", () =>
  Effect.scoped(Effect.gen(function*() {
    let open = false
    const server = McpServer.layer(
      { name: "guarded", version: "1" },
      Catalog.guarded(named("outer"), Catalog.guarded(named("inner"), tool("nested")), tool("outer")),
      Catalog.guarded(named("outer"), Catalog.guarded(() => undefined, tool("passed"))),
      Catalog.guarded(() => open ? undefined : McpError.other(403, "closed"), tool("switched")),
      Catalog.guarded(() => {
        throw new Error("secret")
      }, tool("broken"))
    )
    const listening = yield* serve(server as Layer.Layer<McpServer.McpServer | Catalog.Catalog>)
    const call = (name: string, args: object = { n: "not an integer" }) => {
      const { body, headers } = modern("tools/call", { name, arguments: args })
      return Effect.map(post(listening, body, headers), ({ json }) => json.error?.message ?? json.result)
    }
    expect(yield* call("nested")).toBe("inner")
    expect(yield* call("outer")).toBe("outer")
    expect(yield* call("passed")).toBe("outer")
    expect(yield* call("switched")).toBe("closed")
    expect(yield* call("broken")).toMatchObject({
      isError: true,
      content: [{ text: expect.not.stringContaining("secret") }]
    })
    open = true
    expect(yield* call("switched", { n: 1 })).toMatchObject({ content: [{ text: "switched" }] })
    const list = yield* post(listening, modern("tools/list").body, modern("tools/list").headers)
    expect(list.json.result.tools).toHaveLength(5)
  })))
