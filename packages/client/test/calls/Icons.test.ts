/** Icons that reach an MCP host (basic, icons). */
import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as ResponseCache from "../../src/ResponseCache.ts"
import * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { warnings } from "./listed.ts"

const image = "data:image/png;base64,iVBORw0KGgo="
const good = ["https://example.com/icon.png", "HTTPS://example.com/icon.svg", image]
const bad = [
  "javascript:alert(1)",
  "JavaScript:alert(1)",
  "file:///etc/passwd",
  "ftp://example.com/icon.png",
  "ws://example.com/",
  "vscode://open",
  // "Ensure that the icon URI is either a HTTPS or `data:` URI."
  "http://example.com/icon.png",
  "data:text/html,<script>alert(1)</script>"
]
const icons = [...bad, ...good].map((src) => ({ src }))
const rest = { resultType: "complete", ttlMs: 0, cacheScope: "private" }
const bare = {
  name: "bare",
  icons: undefined as ReadonlyArray<{ readonly src: string }> | undefined,
  uri: "x:bare",
  uriTemplate: "x:{bare}"
}
const some = { ...bare, name: "some", uri: "x:some", icons }
const none = { ...bare, name: "none", uri: "x:none", icons: [{ src: "file:///etc/passwd" }] }
const items = JSON.parse(JSON.stringify([bare, some, none])) as ReadonlyArray<typeof bare>

const answers: Readonly<Record<string, JsonObject>> = {
  "tools/list": {
    tools: items.map(({ icons, name }) => ({ ...(icons && { icons }), name, inputSchema: { type: "object" } }))
  },
  "resources/list": { resources: items },
  "resources/templates/list": { resourceTemplates: items },
  "prompts/list": { prompts: items }
}

const server = (revision: Revision.Revision, hints: JsonObject = {}) =>
  ScriptedServer.make(
    ScriptedServer.handshake(
      revision,
      ({ method }) => ScriptedServer.success({ ...rest, ...hints, ...answers[method] })
    )
  )

const lists = (client: Client.Client) => [
  Effect.map(client.listToolsPage(), ({ tools }) => tools),
  Effect.map(client.listResourcesPage(), ({ resources }) => resources),
  Effect.map(client.listResourceTemplatesPage(), ({ resourceTemplates }) => resourceTemplates),
  Effect.map(client.listPromptsPage(), ({ prompts }) => prompts)
]

const expected = [["bare", undefined], ["some", good], ["none", undefined]]

const seen = (
  listed: ReadonlyArray<{ readonly name: string; readonly icons?: ReadonlyArray<{ readonly src: string }> }>
) => listed.map(({ icons, name }) => [name, icons?.map(({ src }) => src)])

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(`${revision} · Clients MUST reject icon URIs that use unsafe schemes`, () => {
    it.effect("removes them from listings, and logs it once per listing", () => {
      const { layer, logged } = warnings()
      return Effect.gen(function*() {
        const client = yield* Client.make(server(revision).transport, { revisions: [revision] })
        for (const list of lists(client)) {
          logged.length = 0
          assert.deepStrictEqual(seen(yield* list), expected)
          assert.strictEqual(logged.length, 1)
          assert.match(logged[0]!, /: 9 icons that are neither .* were left out: javascript:alert\(1\), /)
          assert.isBelow(logged[0]!.length, 300)
        }
      }).pipe(Effect.provide(layer))
    })

    it.effect("removes them from links in a result", () => {
      const { layer, logged } = warnings()
      return Effect.gen(function*() {
        const text = { type: "text", text: "See" }
        const links = [text, { type: "resource_link", uri: "x:a", name: "a", icons }]
        const { transport } = ScriptedServer.make(
          ScriptedServer.handshake(revision, ({ method }) =>
            ScriptedServer.success({
              ...rest,
              ...(method === "tools/call"
                ? { content: links }
                : { messages: links.map((content) => ({ role: "user", content })) })
            }))
        )
        const client = yield* Client.make(transport, { revisions: [revision] })
        const { content } = yield* client.callTool("t")
        const { messages } = yield* client.getPrompt("p")
        for (const [first, link] of [content, messages.map(({ content }) => content)]) {
          assert.deepStrictEqual<unknown>(first, text)
          assert.deepStrictEqual(link?.type === "resource_link" ? link.icons?.map(({ src }) => src) : undefined, good)
        }
        assert.strictEqual(logged.length, 2)
      }).pipe(Effect.provide(layer))
    })

    it.effect("removes them from the server's own information", () =>
      Effect.gen(function*() {
        const serverInfo = { name: "x", version: "1", icons }
        const capabilities = {}
        const server = ScriptedServer.make(({ method }) =>
          method === "initialize"
            ? ScriptedServer.success({ protocolVersion: revision, capabilities, serverInfo })
            : ScriptedServer.success({
              ...rest,
              supportedVersions: [revision],
              capabilities,
              _meta: { "io.modelcontextprotocol/serverInfo": serverInfo }
            })
        )
        const client = yield* Client.make(server.transport, { revisions: [revision] })
        assert.deepStrictEqual(client.server?.icons?.map(({ src }) => src), good)
      }))
  })
}

describe("values without unsafe icons", () => {
  it.effect("are returned unchanged, and nothing is logged", () => {
    const { layer, logged } = warnings()
    return Effect.gen(function*() {
      const page = { ...rest, prompts: [{ name: "a" }, { name: "b", icons: [{ src: image, sizes: ["any"] }] }] }
      const { transport } = ScriptedServer.make(
        ScriptedServer.handshake("2026-07-28", () => ScriptedServer.success(page))
      )
      const client = yield* Client.make(transport)
      assert.deepStrictEqual((yield* client.listPromptsPage()).prompts, page.prompts)
      assert.deepStrictEqual(logged, [])
    }).pipe(Effect.provide(layer))
  })
})

describe("cached results", () => {
  it.effect("contain no unsafe icons either, even when another process wrote them into the store", () => {
    const { layer, logged } = warnings()
    return Effect.gen(function*() {
      const store = ResponseCache.make()
      const hints = { ttlMs: 60_000, cacheScope: "public" }
      const { requests, transport } = server("2026-07-28", hints)
      const client = yield* Client.make(transport, { cache: { store, server: "s" } })
      yield* client.listPromptsPage()
      const entry = yield* store.get({ server: "s", method: "prompts/list", params: "{}", partition: undefined })
      assert.isDefined(entry)
      assert.notInclude(entry!.text, "javascript:")
      const text = JSON.stringify({ ...rest, ...hints, ...answers["prompts/list"] })
      yield* store.set({ server: "s", method: "prompts/list", params: "{}", partition: undefined }, { ...entry!, text })
      logged.length = 0
      assert.deepStrictEqual(seen((yield* client.listPromptsPage()).prompts), expected)
      assert.deepStrictEqual(seen((yield* client.listPromptsPage()).prompts), expected)
      assert.strictEqual(requests("prompts/list").length, 1)
      assert.deepStrictEqual(logged, [])
    }).pipe(Effect.provide(layer))
  })
})
