/** Resources (server/resources): the URIs that a server offers and reads, over every transport. */
import { expect, it } from "@effect/vitest"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Effect from "effect/Effect"
import * as kit from "../kit.ts"
import * as transports from "./transports.ts"

/** Not URIs, and so neither offered nor read. */
const notUris = [
  "notes://a b",
  "notes://é",
  "notes://a\nb",
  "notes://a\u0000b",
  "notes://%zz",
  "notes://<b>"
]
/** URIs of a template. */
const templateUris = ["notes://a", "notes://a%20b", "notes://%C3%A9", "notes://a-._~"]

/** URIs of resources. */
const resourceUris = [
  "file:///project/src/main.rs",
  "https://user@example.com:8080/a/b?c=d&e=f#g/?",
  "git://host/a~b;c='d'",
  "urn:isbn:0451450523",
  "x-custom+1.0:a%20b%C3%A9",
  "http://[::1]:80",
  "A:b"
]

const offer = (uri: string) => kit.server(Resource.layer(Resource.make(uri), Effect.succeed("ok")))

for (const [{ connect, name }, revision] of transports.each) {
  it.live(`${revision} · ${name} · servers MUST validate all resource URIs: an invalid one reaches no reader and is not sent`, () =>
    Effect.gen(function*() {
      const read: Array<string> = []
      const template = ResourceTemplate.layer(
        ResourceTemplate.make("notes://{id}", { name: "note" }),
        (_, uri) => Effect.sync(() => (read.push(uri), "text"))
      )
      const client = yield* connect(kit.server(template), revision)
      for (const uri of notUris) {
        const missing = { code: revision < "2026-07-28" ? -32002 : -32602, data: { uri } }
        expect(yield* client.error("resources/read", { uri })).toMatchObject(missing)
        if (revision < "2026-07-28") {
          expect(yield* client.error("resources/subscribe", { uri })).toMatchObject(missing)
        }
      }
      expect(read).toEqual([])
      for (const uri of templateUris) {
        expect((yield* client.result("resources/read", { uri })).contents).toEqual([{ uri, text: "text" }])
      }
      expect(read).toEqual(templateUris)
    }))

  it.live(`${revision} · ${name} · lists and reads resources with valid URIs`, () =>
    Effect.gen(function*() {
      const resources = resourceUris.map((uri) => Resource.layer(Resource.make(uri), Effect.succeed("ok")))
      const client = yield* connect(kit.server(...resources), revision)
      const listed = (yield* client.result("resources/list")).resources
      expect(listed).toEqual(resourceUris.map((uri) => ({ uri, name: uri })))
      for (const uri of resourceUris) {
        expect((yield* client.result("resources/read", { uri })).contents).toEqual([{ uri, text: "ok" }])
      }
    }))
}

it.effect("2025-06-18 · custom URI schemes MUST be in accordance with RFC3986: an invalid URI fails the layer", () =>
  Effect.gen(function*() {
    for (
      const uri of [
        "",
        "readme",
        "/readme",
        "docs/read:me",
        "1a:b",
        "a:b c",
        "a://é",
        "a:%",
        "a:%zz",
        "a:<b>",
        "a:b[c]",
        "a:b#c#d",
        "a:\n",
        ":a"
      ]
    ) {
      expect(yield* kit.failure(offer(uri))).toMatchObject({
        reason: { _tag: "InvalidUri" },
        kind: "resource",
        definition: uri
      })
    }
    const error = yield* kit.failure(offer("x".repeat(10_000))) as Effect.Effect<Error>
    expect(error.message.length).toBeLessThan(300)
  }))
