/** Resources (server/resources): which URIs are read. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Effect from "effect/Effect"
import * as kit from "../kit.ts"

const notUris = [
  "notes://a b",
  "notes://é",
  "notes://a\nb",
  "notes://a\u0000b",
  "notes://%zz",
  "notes://\ud800",
  "notes://<b>"
]
const uris = ["notes://a", "notes://a%20b", "notes://%C3%A9", "notes://a%00b", "notes://a-._~"]

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect(`${revision} · servers MUST validate all resource URIs: an invalid one reaches no reader and is not sent`, () =>
      Effect.gen(function*() {
        const read: Array<string> = []
        const template = ResourceTemplate.layer(
          ResourceTemplate.make("notes://{id}", { name: "note" }),
          (_, uri) => Effect.sync(() => (read.push(uri), "text"))
        )
        const client = yield* kit.client(kit.server(template), revision)
        for (const uri of notUris) {
          const missing = { code: revision < "2026-07-28" ? -32002 : -32602, data: { uri } }
          expect(yield* client.error("resources/read", { uri })).toMatchObject(missing)
          if (revision < "2026-07-28") {
            expect(yield* client.error("resources/subscribe", { uri })).toMatchObject(missing)
          }
        }
        expect(read).toEqual([])
        for (const uri of uris) {
          expect((yield* client.result("resources/read", { uri })).contents).toEqual([{ uri, text: "text" }])
        }
        expect(read).toEqual(uris)
      }))
  })
}
