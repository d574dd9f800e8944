/** `skein inspect` of a domain: its catalog, the cards, and what they claim. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as ServerCard from "@skein/server/ServerCard"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { freePort } from "../../../scripts/freePort.ts"
import { isReadable } from "../src/internal/calls/discovery.ts"
import { isDomain, withScheme } from "../src/internal/commands/commandLine.ts"
import { listen, skein } from "./serverKit.ts"
import { TeaHouse } from "./teaHouse.ts"

const cardType = "application/mcp-server-card+json"

/** Serves these documents by their paths. Returns the domain. */
const serving = (documents: (origin: string) => Readonly<Record<string, unknown>>) =>
  Effect.map(
    listen((request, response) => {
      const document = documents(`http://${request.headers.host}`)[request.url!]
      if (document === undefined) return void response.writeHead(404).end()
      if (document instanceof URL) return void response.writeHead(302, { location: document.href }).end()
      response.writeHead(200, { "content-type": "application/json" })
      response.end(typeof document === "string" ? document : JSON.stringify(document))
    }),
    (url) => new URL(url).host
  )

const catalogOf = (...entries: ReadonlyArray<object>) => ({
  "/.well-known/ai-catalog.json": { specVersion: "1.0", entries }
})

const card = (name: string, remotes: ReadonlyArray<object>) => ({
  $schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
  name,
  version: "1.0.0",
  description: `About ${name}`,
  remotes
})

/** The tea house with a card. Returns its domain. */
const teaHouse = Effect.gen(function*() {
  const port = yield* Effect.promise(freePort)
  const domain = `127.0.0.1:${port}`
  const serverCard = ServerCard.make({ url: `http://${domain}/mcp`, description: "Brews tea." })
  const layer = NodeHttp.layer({ port, serverCard }).pipe(Layer.provide(TeaHouse))
  Context.get(yield* Effect.orDie(Layer.build(layer)), NodeHttp.Server)
  return domain
})

describe("skein inspect <domain>", () => {
  it.live("shows the card of the only server, and then the server", () =>
    Effect.gen(function*() {
      const domain = yield* teaHouse
      const { code, err, out } = yield* skein("inspect", domain, "--info")
      assert.deepStrictEqual([code, err], [0, []])
      const [text = ""] = out
      assert.strictEqual(
        text.split("\n\n")[0],
        [
          "127.0.0.1/tea-house 1.2.3 (server card)",
          "  Description   Brews tea.",
          `  Card          http://${domain}/mcp/server-card`,
          `  Endpoint      http://${domain}/mcp`
        ].join("\n")
      )
      assert.match(text, /\n\ntea-house 1\.2\.3\n {2}Protocol {6}2026-07-28/)
      const json = yield* skein("inspect", "--json", domain)
      const { card, server, tools } = JSON.parse(json.out[0]!)
      assert.deepStrictEqual([card.name, server.name, tools.length], ["127.0.0.1/tea-house", "tea-house", 4])
    }).pipe(Effect.scoped))

  it.live("lists several servers, and leaves out a card that cannot be read, with the reason", () =>
    Effect.gen(function*() {
      const domain = yield* serving((origin) => ({
        ...catalogOf(
          { identifier: "urn:a", type: cardType, url: "/a" },
          // A draft of the catalog.
          { identifier: "urn:b", mediaType: cardType, url: `${origin}/b-moved` },
          { identifier: "urn:c", type: cardType, data: card("com.example/c", [{ type: "sse", url: "https://c/sse" }]) },
          { identifier: "urn:missing", type: cardType, url: "/missing" },
          { identifier: "urn:text", type: cardType, url: "/text" },
          { identifier: "urn:plain", type: cardType, url: "http://plain.example/card" },
          { identifier: "urn:moved", type: cardType, url: "/moved" },
          { identifier: "urn:loop", type: cardType, url: "/loop" },
          { identifier: "urn:skill", type: "application/ai-skill", url: "/skill" }
        ),
        "/a": card("com.example/a", [{ type: "streamable-http", url: "https://a.example/mcp" }]),
        "/b": card("com.example/b", [{ type: "streamable-http", url: "https://{tenant}.example/mcp" }]),
        "/text": "not JSON",
        "/moved": new URL("http://plain.example/card"),
        "/b-moved": new URL(`${origin}/b`),
        "/loop": new URL(`${origin}/loop`)
      }))
      const { code, err, out } = yield* skein("inspect", domain)
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(out[0]!.split("\n").map((line) => line.split(/ {2,}/)), [
        ["SERVER", "VERSION", "ENDPOINT", "DESCRIPTION"],
        ["com.example/a", "1.0.0", "https://a.example/mcp", "About com.example/a"],
        ["com.example/b", "1.0.0", "About com.example/b"],
        ["com.example/c", "1.0.0", "About com.example/c"]
      ])
      const rule = "an address must be https, and of this computer only for its own catalog"
      assert.deepStrictEqual(err.map((line) => line.replace(/: (Unexpected token).*/, ": $1")), [
        "The card /missing is left out: HTTP 404",
        "The card /text is left out: Unexpected token",
        `The card http://plain.example/card is left out: ${rule}`,
        `The card /moved is left out: it redirects to http://plain.example/card: ${rule}`,
        "The card /loop is left out: it has more than 3 redirects",
        "Inspect one of them: skein inspect https://a.example/mcp"
      ])
    }).pipe(Effect.scoped))

  it.live("reports where a card contradicts the server", () =>
    Effect.gen(function*() {
      const other = yield* teaHouse
      const remote = {
        type: "streamable-http",
        url: `http://${other}/mcp`,
        supportedProtocolVersions: ["2026-07-28", "2030-01-01"]
      }
      const domain = yield* serving(() => catalogOf({ type: cardType, data: card("com.example/tea", [remote]) }))
      const { code, err } = yield* skein("inspect", "--info", domain)
      assert.deepStrictEqual([code, err], [0, [
        "The card has the version 1.0.0, and the server 1.2.3",
        "The card lists revisions that the server does not support: 2030-01-01"
      ]])
    }).pipe(Effect.scoped))

  it.live("fails without a catalog or a server in it, and says what to do", () =>
    Effect.gen(function*() {
      const none = yield* serving(() => ({}))
      const missing = yield* skein("inspect", none)
      assert.deepStrictEqual([missing.code, missing.err], [3, [
        `skein: ${none} has no catalog of its servers that can be read (http://${none}/.well-known/ai-catalog.json: HTTP ` +
        `404). Give the URL of the server, such as http://${none}/mcp`
      ]])
      const empty = yield* serving(() => catalogOf({ type: "application/ai-skill", url: "/s" }))
      const without = yield* skein("inspect", empty)
      assert.strictEqual(without.code, 4)
      assert.match(without.err[0]!, /has no MCP server that can be used: it lists none$/)
      const large = yield* serving(() => ({ "/.well-known/ai-catalog.json": `"${"x".repeat(1024 * 1024)}"` }))
      assert.match((yield* skein("inspect", large)).err[0]!, /it has more than 1048576 characters/)
      const odd = yield* serving(() => ({ "/.well-known/ai-catalog.json": [] }))
      assert.match((yield* skein("inspect", odd)).err[0]!, /is not a catalog: it has no entries$/)
    }).pipe(Effect.scoped))

  it.live("reads 32 cards of a catalog, and says that there are more", () =>
    Effect.gen(function*() {
      const asked = new Set<string>()
      const catalog = Array.from({ length: 33 }, (_, at) => ({ type: cardType, url: `/card${at}` }))
      const url = yield* listen((request, response) => {
        if (request.url!.startsWith("/card")) asked.add(request.url!)
        const isCatalog = request.url === "/.well-known/ai-catalog.json"
        response.end(JSON.stringify(isCatalog ? { entries: catalog } : card(`com.example${request.url}`, [])))
      })
      const { code, err, out } = yield* skein("inspect", new URL(url).host)
      assert.deepStrictEqual([code, err, asked.size], [0, ["Only the first 32 of 33 cards are read"], 32])
      assert.strictEqual(out[0]!.split("\n").length, 1 + 32)
    }).pipe(Effect.scoped))

  it.effect("waits 10 seconds for a document, or less with --timeout", () =>
    Effect.gen(function*() {
      for (const [words, time] of [[[], 10_000], [["--timeout", "2"], 2_000]] as const) {
        const asked = yield* Deferred.make<void>()
        const url = yield* listen((_, response) => {
          response.writeHead(200).write("{")
          Deferred.doneUnsafe(asked, Effect.void)
        })
        const running = yield* Effect.forkChild(skein("inspect", ...words, new URL(url).host))
        yield* Deferred.await(asked)
        yield* TestClock.adjust(time - 1)
        assert.isUndefined(running.pollUnsafe())
        yield* TestClock.adjust(1)
        const { code, err } = yield* Fiber.join(running)
        assert.strictEqual(code, 3)
        assert.include(err[0]!, `ai-catalog.json: it took more than ${time} ms)`)
      }
    }).pipe(Effect.scoped))

  it.live("leaves out a card that is nested deeper than the stack, which --json could not print", () =>
    Effect.gen(function*() {
      const deep = `{"name":"com.example/deep","x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
      const domain = yield* serving(() => ({
        ...catalogOf({ type: cardType, url: "/deep" }, { type: cardType, data: card("com.example/flat", []) }),
        "/deep": deep
      }))
      const { code, err, out } = yield* skein("inspect", "--json", domain)
      assert.deepStrictEqual([code, err], [0, ["The card /deep is left out: it is nested too deeply"]])
      assert.include(out[0]!, "com.example/flat")
    }).pipe(Effect.scoped))

  it.live("is for inspect only, without headers: the catalog must not decide who receives a secret", () =>
    Effect.gen(function*() {
      const read = yield* skein("read", "example.com", "shop://menu")
      assert.strictEqual(read.code, 2)
      assert.match(
        read.err[0]!,
        /example\.com is a domain: give the URL of its server, such as https:\/\/example\.com\/mcp/
      )
      const header = yield* skein("inspect", "--header", "Authorization: Bearer x", "example.com")
      assert.strictEqual(header.code, 2)
      assert.match(header.err[0]!, /--header needs the URL of the server: skein inspect example\.com prints it/)
    }))

  it("sends requests to this computer only for its own catalog", () => {
    const readable = (url: string, domain: string) => isReadable(new URL(url), new URL(domain))
    const urls = [
      "https://a.example/x",
      "http://a.example/x",
      "http://127.0.0.1:1/x",
      "https://localhost/x",
      "http://[::1]/x",
      "https://tea.localhost/x",
      "https://tea.localhost./x",
      "https://[::ffff:127.0.0.1]/x",
      "https://0.0.0.0/x",
      "https://[::]/x"
    ]
    const local = urls.slice(2)
    assert.deepStrictEqual(urls.filter((url) => readable(url, "https://b.example")), ["https://a.example/x"])
    assert.deepStrictEqual(urls.filter((url) => readable(url, "http://localhost:3000")), [
      "https://a.example/x",
      ...local
    ])
    // Names of other computers that begin like this one.
    for (const domain of ["https://localhost.example", "https://127.evil.example"]) {
      assert.deepStrictEqual(urls.filter((url) => readable(url, domain)), ["https://a.example/x"], domain)
    }
  })

  it("tells domains from programs", () => {
    for (
      const word of [
        "example.com",
        "mcp.example.co.uk",
        "EXAMPLE.com:8443",
        "localhost",
        "localhost:3000",
        "127.0.0.1:1"
      ]
    ) {
      assert.isTrue(isDomain(word), word)
    }
    for (
      const word of [
        "node",
        "server.mjs",
        "run.sh",
        "tea.exe",
        "./example.com",
        "package.json",
        "a b.com",
        "-x.com",
        "127.0.0.256",
        "localhost:99999"
      ]
    ) {
      assert.isFalse(isDomain(word), word)
    }
  })

  it("means http by an address without a scheme only for this computer", () => {
    for (const address of ["localhost", "LOCALHOST:3000", "127.0.0.1:1/mcp", "[::1]:3000"]) {
      assert.strictEqual(withScheme(address), `http://${address}`)
    }
    for (const address of ["example.com", "localhost.example", "127.evil.example:1/mcp", "localhost@evil.example"]) {
      assert.strictEqual(withScheme(address), `https://${address}`)
    }
  })
})
