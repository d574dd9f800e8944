import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as kit from "./kit.ts"
import { run } from "./process/run.ts"

const echo = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
const text = (reply: kit.Reply): string => reply.json?.result?.content[0].text

describe("Express", () => {
  it.live("serves at a path, below a router, and behind the application's own parsers and middleware", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* run("express.ts")
      for (const path of ["/mcp", "/api/v1/mcp", "/json", "/text", "/raw", "/auth"]) {
        expect([path, text(yield* kit.send(at, { ...echo, path }))]).toEqual([path, "hi"])
        const evil = { ...echo, path, headers: { ...echo.headers, host: "evil.com" } }
        expect((yield* kit.send(at, evil)).status).toBe(403)
      }
      const listening = yield* kit.open(at, kit.modern("subscriptions/listen", { notifications: {} }))
      expect((yield* listening.message).method).toBe("notifications/subscriptions/acknowledged")

      // A body that a parser has read is checked against the same bounds and compared with the headers.
      const large = kit.modern("tools/call", { name: "echo", arguments: { text: "x".repeat(1_000) } })
      expect((yield* kit.send(at, { ...large, path: "/json" })).status).toBe(413)
      const other = { ...echo, path: "/json", headers: { ...echo.headers, "Mcp-Name": "other" } }
      expect((yield* kit.send(at, other)).json.error.code).toBe(-32020)

      const who = kit.modern("tools/call", { name: "whoami", arguments: {} }, { headers: { "x-user": "bob" } })
      expect(text(yield* kit.send(at, { ...who, path: "/auth" }))).toBe("bob")
      expect(text(yield* kit.send(at, who))).toBe("nobody")

      // `Http.paths` names the paths of an endpoint, with those of the pages beside it.
      expect((yield* kit.send(at, { ...echo, path: "/protected/mcp" })).status).toBe(401)
      expect((yield* kit.send(at, { method: "GET", path: "/.well-known/metadata" })).text).toBe("metadata")
    })))
})
