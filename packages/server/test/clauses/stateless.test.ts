/**
 * An endpoint without sessions does not declare capabilities that need a session (lifecycle, capability negotiation).
 */
import { expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as catalog from "../catalog.ts"
import * as http from "../http/kit.ts"
import * as kit from "../kit.ts"

const serve = http.serve(catalog.server, { sessions: { stateless: true } })

for (const revision of Revision.sessionBased) {
  it.live(`${revision} · only use capabilities that were successfully negotiated: declares no later notifications`, () =>
    Effect.gen(function*() {
      const at = yield* serve
      const ask = (method: string, params: object) =>
        Effect.map(
          http.post(at, { jsonrpc: "2.0", id: 1, method, params }, { "mcp-protocol-version": revision }),
          ({ json }) => json
        )
      const { result } = yield* ask("initialize", kit.hello(revision))
      expect(result.capabilities).toEqual({ tools: {}, resources: {}, prompts: {} })
      for (
        const [method, params] of [
          ["resources/subscribe", { uri: "docs://readme" }],
          ["resources/unsubscribe", { uri: "docs://readme" }],
          ["logging/setLevel", { level: "debug" }]
        ] as const
      ) {
        expect([method, (yield* ask(method, params)).error?.code]).toEqual([method, -32601])
      }
      expect((yield* ask("tools/list", {})).result.tools.length).toBe(4)
    }))
}

it.live("2026-07-28 · declares the same capabilities, because each request is served alone anyway", () =>
  Effect.gen(function*() {
    const kept = yield* http.send(yield* http.serve(catalog.server), http.modern("server/discover"))
    const alone = yield* http.send(yield* serve, http.modern("server/discover"))
    expect(alone.json.result).toEqual(kept.json.result)
  }))
