/** Messages that some clients send, and that are accepted although the schemas do not allow them. */
import { expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as catalog from "../catalog.ts"
import * as transports from "./transports.ts"

for (const [{ connect, name }, revision] of transports.each) {
  it.live(`${revision} · ${name} · reads members of null as absent, and ignores unknown members`, () =>
    Effect.gen(function*() {
      const client = yield* connect(catalog.server, revision)
      const odd = { "x-unknown": [null], task: null }
      const list = yield* client.request("tools/list", { cursor: null, ...odd })
      expect(list.result.tools.length).toBe(4)
      const call = yield* client.request("tools/call", { name: "numbers", arguments: null, ...odd })
      expect(call.result.content).toEqual([{ type: "text", text: "[1,2.5,3]" }])
      const prompt = yield* client.request("prompts/get", { name: "gallery", arguments: null, ...odd })
      expect(prompt.result.messages.length).toBe(6)
      // A required member of null counts as missing.
      const add = yield* client.request("tools/call", { name: "add", arguments: null })
      expect(add.error?.code ?? add.result.isError).toBe(revision < "2025-11-25" ? -32602 : true)
      if (Revision.era(revision) === "session") expect((yield* client.request("ping", null)).result).toEqual({})
    }))
}
