import { describe, expect, it } from "@effect/vitest"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const call = (name: string, args: object): kit.Request => kit.modern("tools/call", { name, arguments: args })

const echo = call("echo", { text: "hi" })
const with_ = (request: kit.Request, headers: kit.Request["headers"]): kit.Request => ({
  ...request,
  headers: { ...request.headers, ...headers }
})

const base64 = (text: string): string => `=?base64?${Buffer.from(text).toString("base64")}?=`

describe("headers", () => {
  const region = Tool.layer(
    Tool.make("query", {
      description: "Asks.",
      input: {
        region: Schema.String.annotate({ "x-mcp-header": "Region" }),
        limit: Schema.optionalKey(Schema.Int.annotate({ "x-mcp-header": "Limit" }))
      }
    }),
    ({ region }) => Effect.succeed(region)
  )

  it.live("2026-07-28 · the header MUST match the protocolVersion of _meta: 400 and HeaderMismatch", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo))
      for (const version of ["2025-11-25", "v999.0.0", "2026-07-28, 2026-07-28", undefined, ""]) {
        const { json, status } = yield* kit.send(at, with_(echo, { "MCP-Protocol-Version": version }))
        expect([version, status, json.error.code, json.id]).toEqual([version, 400, -32020, 1])
      }
      const body = { ...(echo.body as object), params: { _meta: kit.meta("v999.0.0") } }
      expect((yield* kit.send(at, { ...echo, body })).json.error.code).toBe(-32020)
    })))

  it.live("2026-07-28 · a required standard header is missing, or does not match: 400 and HeaderMismatch", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo))
      const wrong: ReadonlyArray<kit.Request["headers"]> = [
        { "Mcp-Method": undefined },
        { "Mcp-Method": "tools/list" },
        { "Mcp-Method": "TOOLS/CALL" },
        { "Mcp-Method": base64("tools/call") },
        { "Mcp-Name": undefined },
        { "Mcp-Name": "other" },
        { "Mcp-Name": "ECHO" },
        { "Mcp-Name": "=?base64?ZWNobw?=" },
        { "Mcp-Name": "\u00e9cho" }
      ]
      for (const headers of wrong) {
        const { json, status } = yield* kit.send(at, with_(echo, headers))
        expect([headers, status, json.error.code, json.id]).toEqual([headers, 400, -32020, 1])
      }
      const right = [{ "Mcp-Name": "  echo  " }, { "Mcp-Name": base64("echo") }]
      for (const headers of right) expect((yield* kit.send(at, with_(echo, headers))).status).toBe(200)
      // "Header names are case-insensitive."
      const { "Mcp-Method": method, ...rest } = echo.headers!
      for (const name of ["mcp-method", "MCP-METHOD"]) {
        expect((yield* kit.send(at, { ...echo, headers: { ...rest, [name]: method } })).status).toBe(200)
      }
    })))

  it.live("2026-07-28 · Mcp-Param: Server MUST validate header matches body", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(region))
      const ask = (args: object, headers: kit.Request["headers"]) =>
        Effect.map(kit.send(at, with_(call("query", args), headers)), ({ json, status }) => [status, json.error?.code])
      const right: ReadonlyArray<readonly [object, kit.Request["headers"]]> = [
        [{ region: "eu" }, { "Mcp-Param-Region": "eu" }],
        [{ region: "eu" }, { "MCP-PARAM-REGION": base64("eu") }],
        [{ region: "\u4e16" }, { "Mcp-Param-Region": base64("\u4e16") }],
        [{ region: "SGVsbG8=" }, { "Mcp-Param-Region": "SGVsbG8=" }],
        [{ region: "eu", limit: 42 }, { "Mcp-Param-Region": "eu", "Mcp-Param-Limit": "42.0" }],
        // "MUST forward it and otherwise ignore it"
        [{ region: "eu" }, { "Mcp-Param-Region": "eu", "Mcp-Param-Unknown": "x" }]
      ]
      for (const [args, headers] of right) expect(yield* ask(args, headers)).toEqual([200, undefined])
      const wrong: ReadonlyArray<readonly [object, kit.Request["headers"]]> = [
        [{ region: "eu" }, {}],
        [{ region: "eu" }, { "Mcp-Param-Region": "us" }],
        [{ region: "eu" }, { "Mcp-Param-Region": ["eu", "us"] }],
        [{ region: "eu, us" }, { "Mcp-Param-Region": ["eu", "us"] }],
        [{ region: "eu" }, { "Mcp-Param-Region": "eu", "Mcp-Param-Limit": "1" }],
        [{ region: "eu", limit: 42 }, { "Mcp-Param-Region": "eu", "Mcp-Param-Limit": "43" }],
        [{ region: "eu", limit: 42 }, { "Mcp-Param-Region": "eu" }],
        [{ region: "eu" }, { "Mcp-Param-Region": "=?base64?ZX!?=" }],
        [{ region: "eu" }, { "Mcp-Param-Region": "eu", "Mcp-Param-Unknown": "\u00e9" }]
      ]
      for (const [args, headers] of wrong) {
        expect([headers, ...yield* ask(args, headers)]).toEqual([headers, 400, -32020])
      }
    })))
})
