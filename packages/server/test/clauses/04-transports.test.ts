/** Rules that hold over every transport: a transport carries messages without changing them. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as catalog from "../catalog.ts"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

/** Requests for everything in the catalog, and for entries that it does not have. */
const script: ReadonlyArray<readonly [string, kit.Json?]> = [
  ["tools/list"],
  ["tools/call", { name: "show" }],
  ["tools/call", { name: "add", arguments: { a: 1, b: 2.5 } }],
  ["tools/call", { name: "add", arguments: { a: "1" } }],
  ["tools/call", { name: "numbers" }],
  ["tools/call", { name: "juggle" }],
  ["tools/call", { name: "add", arguments: 7 }],
  ["resources/list"],
  ["resources/templates/list"],
  ["resources/read", { uri: "docs://readme" }],
  ["resources/read", { uri: "docs://blob" }],
  ["resources/read", { uri: "docs://many" }],
  ["resources/read", { uri: "notes://42" }],
  ["resources/read", { uri: "docs://none" }],
  ["resources/subscribe", { uri: "docs://readme" }],
  ["resources/subscribe", { uri: "docs://none" }],
  ["resources/unsubscribe", { uri: "docs://readme" }],
  ["prompts/list"],
  ["prompts/get", { name: "review", arguments: { code: "1 + 1" } }],
  ["prompts/get", { name: "review", arguments: {} }],
  ["prompts/get", { name: "gallery" }],
  ["prompts/get", { name: "juggle" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "review" }, argument: { name: "tone", value: "" } }],
  ["logging/setLevel", { level: "debug" }],
  ["logging/setLevel", { level: "loud" }],
  ["tools/list", { cursor: "made up" }],
  ["server/discover"],
  ["ping"],
  ["subscriptions/unlisten"],
  ["tasks/list"]
]

const answers = (client: Pick<transports.Client, "request">) =>
  Effect.forEach(
    script,
    ([method, params]) => Effect.map(client.request(method, params), ({ error, result }) => [method, error ?? result])
  )

for (const revision of Revision.all) {
  describe(revision, () => {
    for (const { connect, name, revisions } of transports.all) {
      if (!revisions.includes(revision)) continue
      it.live(`${revision} · ${name} · responds exactly as in memory, and validly`, () =>
        Effect.gen(function*() {
          const expected = yield* answers(yield* kit.client(catalog.server, revision))
          expect(yield* answers(yield* connect(catalog.server, revision))).toEqual(expected)
        }))

      it.live(`${revision} · ${name} · sends progress before the response, and only if it is requested`, () =>
        Effect.gen(function*() {
          const client = yield* connect(catalog.server, revision)
          yield* client.request("tools/call", { name: "steps" })
          expect(client.received).toEqual([])
          yield* client.request("tools/call", { name: "steps", _meta: { progressToken: 0 } })
          expect(client.received.map(({ method, params }) => [method, params.progressToken, params.progress])).toEqual([
            ["notifications/progress", 0, 1],
            ["notifications/progress", 0, 2]
          ])
        }))
    }
  })
}
