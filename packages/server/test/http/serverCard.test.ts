/** The option `serverCard`: the card of a server and the catalog of its domain, behind each adapter. */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as ServerCard from "@skein/server/ServerCard"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Formats from "ajv-formats"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { directory } from "../../../protocol/test/oracle/Spec.ts"
import { adapters } from "./adapters.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const info: McpServer.Options = {
  name: "tea house",
  version: "1.2.0",
  title: "Tea House",
  description: "Sells tea.",
  websiteUrl: "https://tea.example.com/",
  icons: [{ src: "https://tea.example.com/icon.png", mimeType: "image/png", sizes: ["48x48"] }],
  revisions: ["2026-07-28", "2025-11-25"]
}

const url = "https://tea.example.com/mcp"
const cardPath = "/mcp/server-card"
const catalogPath = "/.well-known/ai-catalog.json"

/** The card that a server has with these options, or the message of the defect. */
const cardOf = (server: McpServer.Options, options: Partial<ServerCard.Options> = {}) =>
  Effect.gen(function*() {
    const made = ServerCard.make({ url, ...options })
    const exit = yield* Effect.exit(Effect.provide(made, McpServer.layer(server)))
    if (Exit.isFailure(exit)) return (Cause.squash(exit.cause) as Error).message
    let text = ""
    const request = { method: "GET", path: cardPath, header: () => undefined } as unknown as Http.PageRequest
    const answer = { reply: (_: number, __: Http.Headers, body: string) => void (text = body) }
    exit.value.handle(request, answer as unknown as Http.HttpAnswer)
    return JSON.parse(text) as unknown
  })

describe.each(adapters)("a server with a card behind $name", ({ serve }) => {
  const listening = (options?: Http.Options, card: Partial<ServerCard.Options> = {}) =>
    serve(McpServer.layer(info, fixtures.echo), {
      serverCard: ServerCard.make({ url, ...card }),
      ...options
    })

  it.live("returns the card beside the endpoint, and the catalog of the domain with its address", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* listening()
      const card = yield* kit.send(server, { method: "GET", path: cardPath })
      expect([card.status, card.headers["content-type"]]).toEqual([200, "application/mcp-server-card+json"])
      expect(card.json).toEqual({
        $schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        name: "com.example.tea/tea-house",
        version: "1.2.0",
        title: "Tea House",
        description: "Sells tea.",
        websiteUrl: "https://tea.example.com/",
        icons: info.icons,
        remotes: [{ type: "streamable-http", url, supportedProtocolVersions: ["2026-07-28", "2025-11-25"] }]
      })
      const catalog = yield* kit.send(server, { method: "GET", path: catalogPath })
      expect([catalog.status, catalog.headers["content-type"]]).toEqual([200, "application/ai-catalog+json"])
      expect(catalog.json).toEqual({
        specVersion: "1.0",
        entries: [{
          identifier: "urn:air:tea.example.com:mcp:tea-house",
          type: "application/mcp-server-card+json",
          url: `https://tea.example.com${cardPath}`
        }]
      })
      // The endpoint itself answers as before.
      const call = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
      expect((yield* kit.send(server, call)).status).toBe(200)
    })))

  it.live("returns 304 for the ETag of a document, and lets pages of every origin read it", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* listening()
      const get = (headers: kit.Request["headers"], method = "GET") =>
        kit.send(server, { method, path: cardPath, headers: { origin: "https://other.example", ...headers } })
      const first = yield* get({})
      expect(first.headers).toMatchObject({
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "ETag",
        "cache-control": "public, max-age=3600"
      })
      const etag = first.headers["etag"]!
      for (const given of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
        const again = yield* get({ "if-none-match": given })
        expect([given, again.status, again.text, again.headers["etag"]]).toEqual([given, 304, "", etag])
      }
      expect((yield* get({ "if-none-match": "\"other\"" })).status).toBe(200)
      const head = yield* get({}, "HEAD")
      expect([head.status, head.text, head.headers["etag"]]).toEqual([200, "", etag])
      const preflight = yield* get({ "access-control-request-method": "GET" }, "OPTIONS")
      expect([preflight.status, preflight.headers["access-control-allow-headers"]]).toEqual(
        [204, "Content-Type, If-None-Match"]
      )
      const posted = yield* get({}, "POST")
      expect([posted.status, posted.headers["allow"]]).toEqual([405, "GET, HEAD, OPTIONS"])
    })))

  it.live("checks Host, and asks for no credentials", () =>
    Effect.scoped(Effect.gen(function*() {
      const refusal = new Http.Refusal({ status: 401, message: "Unauthorized" })
      const server = yield* listening({ protection: { identify: () => Effect.fail(refusal) } })
      for (const path of [cardPath, catalogPath]) {
        const evil = yield* kit.send(server, { method: "GET", path, headers: { host: "evil.example" } })
        expect([path, evil.status]).toEqual([path, 403])
        expect([path, (yield* kit.send(server, { method: "GET", path })).status]).toEqual([path, 200])
      }
    })))

  it.live("returns 404 for the catalog with catalog: false, and for paths beside the card", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* listening({}, { catalog: false })
      for (const path of [catalogPath, `${cardPath}/`, `${cardPath}.json`, "/server-card"]) {
        expect([path, (yield* kit.send(server, { method: "GET", path })).status]).toEqual([path, 404])
      }
      expect((yield* kit.send(server, { method: "GET", path: cardPath })).status).toBe(200)
    })))
})

describe("ServerCard.make", () => {
  it("rejects a URL that clients cannot be sent to", () => {
    const urls = ["tea", "http://tea.example.com/mcp", "ftp://tea.example.com", "https://a:b@tea.example.com/mcp"]
    for (const url of [...urls, "https://tea.example.com/mcp#x"]) expect(() => ServerCard.make({ url })).toThrow(/url/)
    expect(() => ServerCard.make({ url: "http://localhost:3000/mcp" })).not.toThrow()
  })

  it.effect("derives the name from the domain, and the description from the title or the name", () =>
    Effect.gen(function*() {
      const minimal = { name: "tea", version: "1.0.0" }
      expect(yield* cardOf(minimal)).toMatchObject({ name: "com.example.tea/tea", description: "tea" })
      expect(yield* cardOf({ ...minimal, title: "Tea House" })).toMatchObject({ description: "Tea House" })
      expect(yield* cardOf({ ...minimal, name: "com.acme/tea" })).toMatchObject({ name: "com.acme/tea" })
      expect(yield* cardOf(minimal, { name: "com.acme/t", description: "Tea." })).toMatchObject({
        name: "com.acme/t",
        description: "Tea."
      })
    }))

  it.effect("names the member that cannot be in a card, and the option that replaces it", () =>
    Effect.gen(function*() {
      const minimal = { name: "tea", version: "1.0.0" }
      const long = "x".repeat(101)
      expect(yield* cardOf({ ...minimal, description: long })).toBe(
        "tea has no card: the description of a card has 1 to 100 characters, and not 101: set the option description " +
          "of ServerCard.make"
      )
      expect(yield* cardOf({ ...minimal, title: long }, { description: "Tea." })).toMatch(/shorten the title/)
      expect(yield* cardOf(minimal, { name: "tea" })).toMatch(/set the option name of ServerCard.make/)
      for (const version of ["^1.2.3", ">=1.0.0", "1.x", "1.*", ""]) {
        expect(yield* cardOf({ ...minimal, version })).toMatch(/version of a card is one version/)
      }
      for (const version of ["1.0.0", "2.1.0-alpha", "2026-01-02"]) {
        expect(yield* cardOf({ ...minimal, version })).toMatchObject({ version })
      }
    }))

  it("lists the paths of the documents for routers", () => {
    expect(Http.paths({ path: "/mcp", serverCard: { paths: ["/mcp/server-card"], handle: () => false } })).toEqual([
      "/mcp",
      "/mcp/server-card"
    ])
  })

  const schemaFile = join(directory, "registry", "server-card.schema.json")

  it.effect.skipIf(!existsSync(schemaFile))(
    "makes cards that the schema of the proposal accepts",
    () =>
      Effect.gen(function*() {
        const ajv = new Ajv2020({ strict: false })
        Formats.default.default(ajv)
        const schema = JSON.parse(readFileSync(schemaFile, "utf8")) as { readonly $defs: object }
        const validate = ajv.compile({ $defs: schema.$defs, $ref: "#/$defs/ServerCard" })
        const cards = [
          yield* cardOf({ name: "tea", version: "1.0.0" }),
          yield* cardOf(info, {
            name: "com.example/tea",
            description: "Tea.",
            repository: { source: "github", url: "https://github.com/example/tea", subfolder: undefined },
            headers: [{ name: "X-API-Key", description: "A key of the tea house", isRequired: true, isSecret: true }]
          })
        ]
        for (const card of cards) expect([validate(card), validate.errors, card]).toEqual([true, null, card])
        expect(validate({ ...(cards[0] as object), name: "tea" })).toBe(false)
      })
  )
})
