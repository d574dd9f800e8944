import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Spec from "../../protocol/test/oracle/Spec.ts"
import * as catalog from "./catalog.ts"
import * as kit from "./kit.ts"

const knows = (revision: Revision.Revision, since: Revision.Revision): boolean => revision >= since

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect(`${revision} · lists the tools of the catalog in the order of the definitions`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        const { tools, nextCursor } = yield* client.result("tools/list")
        expect(nextCursor).toBeUndefined()
        expect(tools.map((tool: kit.Json) => tool.name)).toEqual(["add", "numbers", "show", "steps"])
        const [add, numbers, show] = tools
        expect(add.inputSchema).toMatchObject({
          type: "object",
          required: ["a", "b"],
          properties: { a: { type: "number" } }
        })
        expect("outputSchema" in add).toBe(knows(revision, "2025-06-18"))
        // Before 2026-07-28 an output schema must be of an object.
        expect("outputSchema" in numbers).toBe(knows(revision, "2026-07-28"))
        expect("title" in show).toBe(knows(revision, "2025-06-18"))
        expect("_meta" in show).toBe(knows(revision, "2025-06-18"))
        expect("annotations" in show).toBe(knows(revision, "2025-03-26"))
        expect("icons" in show).toBe(knows(revision, "2025-11-25"))
        expect(show.inputSchema).toEqual({ type: "object", additionalProperties: false })
      }))

    it.effect(`${revision} · sends content of every kind, in the kinds of the revision`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        const { content } = yield* client.call("show")
        const { messages } = yield* client.result("prompts/get", { name: "gallery" })
        const got = messages.map((message: kit.Json) => message.content)
        for (const list of [content, got]) {
          expect(list.map((block: kit.Json) => block.type)).toEqual([
            "text",
            "image",
            knows(revision, "2025-03-26") ? "audio" : "text",
            knows(revision, "2025-06-18") ? "resource_link" : "text",
            "resource",
            "resource"
          ])
          const [text, image, audio, link, embedded, blob] = list
          expect(text.text).toBe("plain")
          expect("_meta" in text).toBe(knows(revision, "2025-06-18"))
          expect("lastModified" in text.annotations).toBe(knows(revision, "2025-06-18"))
          expect(image).toMatchObject({ data: "AQID", mimeType: "image/png" })
          expect(audio).toMatchObject(
            knows(revision, "2025-03-26") ? { data: "AQID", mimeType: "audio/wav" } : { text: "[audio: audio/wav]" }
          )
          expect(link).toMatchObject(
            knows(revision, "2025-06-18")
              ? { uri: "notes://1", name: "note-1", title: "Note one", size: 3 }
              : { text: "[resource: Note one] notes://1" }
          )
          expect(embedded.resource).toEqual({ uri: "notes://2", mimeType: "text/plain", text: "inline text" })
          expect(blob.resource).toEqual({ uri: "notes://3", mimeType: "application/octet-stream", blob: "AQID" })
        }
      }))

    it.effect(`${revision} · sends structured content if the revision has it, and always as text too`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        const sum = yield* client.call("add", { a: 1, b: 2.5 })
        expect(sum.content).toEqual([{ type: "text", text: "{\"sum\":3.5}" }])
        expect(sum.structuredContent).toEqual(knows(revision, "2025-06-18") ? { sum: 3.5 } : undefined)
        expect(sum.isError).toBeUndefined()
        const numbers = yield* client.call("numbers")
        expect(numbers.content).toEqual([{ type: "text", text: "[1,2.5,3]" }])
        expect(numbers.structuredContent).toEqual(knows(revision, "2026-07-28") ? [1, 2.5, 3] : undefined)
      }))

    it.effect(`${revision} · lists and reads resources and templates: text, bytes, and several at once`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        const { resources } = yield* client.result("resources/list")
        expect(resources.map((resource: kit.Json) => resource.uri)).toEqual([
          "docs://blob",
          "docs://many",
          "docs://readme"
        ])
        expect(resources[0].name).toBe("docs://blob")
        expect(resources[2]).toMatchObject({ name: "readme", mimeType: "text/markdown", size: 7 })
        const { resourceTemplates } = yield* client.result("resources/templates/list")
        expect(resourceTemplates).toMatchObject([{ uriTemplate: "notes://{id}", name: "note", mimeType: "text/plain" }])
        const read = (uri: string) => Effect.map(client.result("resources/read", { uri }), ({ contents }) => contents)
        expect(yield* read("docs://readme")).toEqual([{
          uri: "docs://readme",
          mimeType: "text/markdown",
          text: "# Hello"
        }])
        expect(yield* read("docs://blob")).toEqual([
          { uri: "docs://blob", mimeType: "application/octet-stream", blob: "AQID" }
        ])
        expect(yield* read("docs://many")).toEqual([
          { uri: "docs://many/1", mimeType: "text/plain", text: "one" },
          { uri: "docs://many/2", blob: "AQID" }
        ])
        expect(yield* read("notes://42")).toEqual([{ uri: "notes://42", mimeType: "text/plain", text: "Note 42" }])
      }))

    it.effect(`${revision} · lists and returns prompts`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        const { prompts } = yield* client.result("prompts/list")
        expect(prompts.map((prompt: kit.Json) => prompt.name)).toEqual(["gallery", "review"])
        expect(prompts[0].arguments).toBeUndefined()
        expect(prompts[1].arguments).toEqual([
          {
            name: "code",
            ...(knows(revision, "2025-06-18") ? { title: "Code" } : undefined),
            description: "What to review",
            required: true
          },
          { name: "tone", required: false }
        ])
        const got = yield* client.result("prompts/get", { name: "review", arguments: { code: "1 + 1" } })
        expect(got.description).toBe("Reviews code")
        expect(got.messages).toEqual([
          { role: "user", content: { type: "text", text: "kind: 1 + 1" } },
          { role: "assistant", content: { type: "text", text: "Sure" } }
        ])
      }))

    it.effect(`${revision} · sends progress with the members of the revision`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        yield* client.result("tools/call", { name: "steps", _meta: { progressToken: "t" } })
        expect(client.notices("notifications/progress").map((notice) => notice.params)).toEqual([
          {
            progressToken: "t",
            progress: 1,
            total: 2,
            ...(knows(revision, "2025-03-26") ? { message: "one" } : undefined)
          },
          {
            progressToken: "t",
            progress: 2,
            total: 2,
            ...(knows(revision, "2025-03-26") ? { message: "two" } : undefined)
          }
        ])
      }))

    it.effect(`${revision} · responds to unknown names with -32602, and to an unknown resource with its own code`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(catalog.server, revision)
        expect(yield* client.error("tools/call", { name: "juggle" })).toEqual({
          code: -32602,
          message: "Unknown tool: juggle"
        })
        expect(yield* client.error("prompts/get", { name: "juggle" })).toMatchObject({ code: -32602 })
        expect(yield* client.error("resources/read", { uri: "docs://none" })).toEqual({
          code: knows(revision, "2026-07-28") ? -32602 : -32002,
          message: "Resource not found",
          data: { uri: "docs://none" }
        })
        expect(yield* client.error("tools/juggle")).toMatchObject({ code: -32601 })
        expect(yield* client.error("tools/call", { name: 7 })).toMatchObject({ code: -32602 })
        expect(yield* client.error("tools/call", {})).toMatchObject({ code: -32602 })
        expect(yield* client.error("tools/call", { name: "add", arguments: [1] })).toMatchObject({ code: -32602 })
      }))
  })
}

Spec.describeSpec("the official schemas", () => {
  it.effect("validate every response in these tests, and refuse an invalid one", () =>
    Effect.gen(function*() {
      const before = kit.validated.count
      const client = yield* kit.client(catalog.server, "2025-06-18")
      const message = yield* client.request("tools/list")
      expect(kit.validated.count).toBe(before + 4)
      message.result.tools[0].name = 7
      expect(() => kit.validate("2025-06-18", "tools/list", message)).toThrow("ListToolsResult")
    }))
})
