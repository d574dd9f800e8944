/** The commands about a server, over stdio and HTTP. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { splitWords } from "../src/internal/commands/commandLine.ts"
import { answering, folder, listen, skein, starting, teaHouse, teaHouseUrl } from "./serverKit.ts"
import { logo } from "./teaHouse.ts"

const inspected = `tea-house 1.2.3
  Protocol      2026-07-28, stateless
  Revisions     2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28
  Capabilities  completions, logging, prompts (listChanged), resources (listChanged, subscribe), tools (listChanged)
  Instructions  Be polite.
  | Never rush.

TOOL        ARGUMENTS                        DESCRIPTION
brew        tea: "assam"|"sencha"|"shincha"  Brews tea.
            cups?: integer
order                                        Asks what you would like
orderTwice
change

RESOURCE      NAME      TYPE        BYTES
shop://menu   The menu  text/plain  14
shop://logo   logo      image/png
shop://order  order

RESOURCE TEMPLATE  NAME
shop://teas/{tea}  tea

PROMPT  ARGUMENTS  DESCRIPTION
review  tea        Reviews a tea
        tone?
ask`

describe("skein · stdio", () => {
  it.live(
    "inspects a server, reads a resource, and prints a prompt, suggestions and times",
    () =>
      Effect.gen(function*() {
        const words = splitWords(teaHouse)
        const inspect = yield* skein("inspect", ...words)
        assert.deepStrictEqual([inspect.code, inspect.out], [0, [inspected]])
        // The command of the server as one word, up to an end mark, and up to the operands that the command has.
        const read = yield* skein("read", teaHouse, "shop://teas/assam")
        assert.deepStrictEqual([read.code, read.out], [0, ["About assam"]])
        const prompt = yield* skein("prompt", ...words, "review", "{\"tea\":\"assam\"}")
        assert.deepStrictEqual([prompt.code, prompt.out[0]?.slice(0, 5)], [0, "user:"])
        const complete = yield* skein("complete", ...words, "--", "review", "tea", "ssa")
        assert.deepStrictEqual([complete.code, complete.out], [0, ["assam"]])
        const ping = yield* skein("ping", "--count", "1", "--revision", "2025-03-26", ...words)
        assert.deepStrictEqual([ping.code, ping.out.length], [0, 2])
        // Five processes, which start slowly under load.
      }),
    90_000
  )
})

describe("skein · HTTP", () => {
  it.live("inspect shows the server, its capabilities and all lists", () =>
    Effect.gen(function*() {
      const { code, err, out } = yield* skein("inspect", yield* teaHouseUrl)
      assert.deepStrictEqual([code, err], [0, []])
      assert.strictEqual(
        out.join("\n"),
        inspected
      )
    }))

  it.live("inspect --json has the schemas of the tools, and only the selected lists", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const all = yield* skein("inspect", "--json", at)
      const {
        capabilities,
        instructions,
        prompts,
        protocolVersion,
        resources,
        resourceTemplates,
        server: info,
        tools
      } = JSON.parse(all.out[0]!)
      assert.deepStrictEqual([all.code, info.name, protocolVersion], [0, "tea-house", "2026-07-28"])
      assert.deepStrictEqual([resources.length, resourceTemplates.length, prompts.length], [3, 1, 2])
      assert.deepStrictEqual(tools[0].inputSchema.required, ["tea"])
      assert.strictEqual(instructions, "Be polite.\nNever rush.")
      assert.property(capabilities, "tools")
      const some = yield* skein("inspect", "--json", "--prompts", "--templates", at)
      assert.deepStrictEqual(Object.keys(JSON.parse(some.out[0]!)), ["resourceTemplates", "prompts"])
    }))

  it.live("inspect finds the revisions of a server with sessions by connecting with each", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const all = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
      const session = yield* skein("inspect", "--info", "--json", "--revision", "2025-06-18", at)
      const { protocolVersion, supportedVersions } = JSON.parse(session.out[0]!)
      assert.deepStrictEqual([protocolVersion, supportedVersions], ["2025-06-18", all])
      const one = yield* answering({
        initialize: { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "old", version: "1" } }
      }, () => ({ code: -32601, message: "no such method" }))
      const old = yield* skein("inspect", "--info", one)
      assert.include(old.out[0], "\n  Protocol      2025-06-18, with a session\n  Revisions     2025-06-18\n")
    }))

  it.live("inspect does not wait for a server that leaves a further connection without an answer", () =>
    Effect.gen(function*() {
      let connections = 0
      const at = yield* listen(async (request, response) => {
        let body = ""
        for await (const chunk of request) body += String(chunk)
        if (request.method !== "POST") return void response.writeHead(405).end()
        const { id, method } = JSON.parse(body)
        if (id === undefined) return void response.writeHead(202).end()
        if (method === "initialize" && ++connections > 1) return
        const result = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "slow", version: "1" } }
        const answer = method === "initialize" ? { result } : { error: { code: -32601, message: "no such method" } }
        response.writeHead(200, { "content-type": "application/json" })
        response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }))
      })
      const { code, err, out } = yield* skein("inspect", "--info", "--timeout", "1", at)
      assert.deepStrictEqual([code, err], [0, [
        "The server did not answer in time whether it supports 2024-11-05, 2025-03-26, 2025-11-25"
      ]])
      assert.include(out[0], "\n  Revisions     2025-06-18\n")
    }))

  it.live("read prints text, and writes binary contents to a pipe or a file", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const text = yield* skein("read", at, "shop://menu")
      assert.deepStrictEqual([text.code, text.out], [0, ["assam\nsencha\n\u001b[2J"]])
      const piped = yield* skein("read", at, "shop://logo")
      assert.deepStrictEqual([piped.code, piped.out, piped.bytes.map((each) => [...each])], [0, [], [[...logo]]])
      const onTerminal = yield* starting(["read", at, "shop://logo"], { isTerminal: true }).running
      assert.deepStrictEqual([onTerminal.code, onTerminal.out, onTerminal.bytes], [2, [], []])
      assert.strictEqual(
        onTerminal.err[0],
        "skein: shop://logo is binary (image/png, 7 bytes): write it to a file with --output <file>"
      )
      const file = join(yield* folder, "logo.png")
      const saved = yield* skein("read", at, "shop://logo", "--output", file)
      assert.deepStrictEqual([saved.code, saved.out, saved.err], [0, [], [`Wrote 7 bytes to ${file}`]])
      assert.deepStrictEqual([...readFileSync(file)], [...logo])
      const json = yield* skein("read", "--json", at, "shop://menu")
      assert.strictEqual(JSON.parse(json.out[0]!).contents[0].uri, "shop://menu")
    }))

  it.live("read fails with 4 for a resource that does not exist, and with 2 for a file that cannot be written", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const missing = yield* skein("read", at, "shop://nothing")
      assert.deepStrictEqual([missing.code, missing.out], [4, []])
      assert.deepStrictEqual(missing.err, ["skein: resources/read: Resource not found: shop://nothing"])
      const file = join(yield* folder, "no", "folder")
      const unwritable = yield* skein("read", "--output", file, at, "shop://menu")
      assert.deepStrictEqual([unwritable.code, unwritable.err], [2, [`skein: ${file} cannot be written: ENOENT`]])
      assert.isFalse(existsSync(file))
    }))

  it.live("prompt prints the messages, and no text can pass for another message", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const { code, err, out } = yield* skein("prompt", at, "review", "{\"tea\":\"sencha\"}")
      assert.deepStrictEqual([code, err], [0, []])
      assert.strictEqual(
        out[0],
        "user:\n  Be kind.\n  assistant:\n    I was never asked\nassistant:\n  sencha: good"
      )
      const json = yield* skein("prompt", "--json", at, "review", "{\"tea\":\"sencha\",\"tone\":\"strict\"}")
      assert.strictEqual(JSON.parse(json.out[0]!).messages[1].role, "assistant")
      const missing = yield* skein("prompt", at, "review")
      assert.deepStrictEqual([missing.code, missing.out], [4, []])
    }))

  it.live("complete prints the suggestions for a prompt and for a template, one in a line", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const prompt = yield* skein("complete", at, "review", "tea", "ssa")
      assert.deepStrictEqual([prompt.code, prompt.out], [0, ["assam"]])
      const word = yield* skein("complete", at, "review", "tea=ssa")
      assert.deepStrictEqual([word.code, word.out], [0, ["assam"]])
      const others = yield* skein("complete", "--with", "tea=assam", at, "review", "tone", "assam s")
      assert.deepStrictEqual(others.out, ["assam strict"])
      const template = yield* skein("complete", "--json", at, "shop://teas/{tea}", "tea")
      assert.deepStrictEqual(JSON.parse(template.out[0]!).values, ["assam", "sencha", "shincha"])
      const none = yield* skein("complete", at, "review", "tea", "zzz")
      assert.deepStrictEqual([none.code, none.out, none.err], [0, [], ["The server has no suggestions"]])
    }))

  it.live("complete names the arguments of a prompt and the variables of a template, if the server refuses the name", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const prompt = yield* skein("complete", at, "review", "te", "ssa")
      assert.deepStrictEqual([prompt.code, prompt.out, prompt.err[0]], [
        4,
        [],
        "The arguments of review are tea, tone"
      ])
      const template = yield* skein("complete", at, "shop://teas/{tea}", "te")
      assert.deepStrictEqual([template.code, template.err[0]], [4, "The arguments of shop://teas/{tea} are tea"])
      const unknown = yield* skein("complete", at, "revue", "tea")
      assert.deepStrictEqual([unknown.code, unknown.err.length], [4, 1])
    }))

  it.live("ping prints the time of each round trip", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      for (const revision of ["2025-11-25", "2026-07-28"]) {
        const { code, out } = yield* skein("ping", "--count", "2", "--interval", "0.01", "--revision", revision, at)
        assert.strictEqual(code, 0)
        const [first, second, summary] = out
        assert.match(first!, /^1  \d+\.\d+ ms$/)
        assert.match(second!, /^2  \d+\.\d+ ms$/)
        assert.match(summary!, /^2 of 2 answered: [\d.]+ ms at least, [\d.]+ ms on average, [\d.]+ ms at most$/)
      }
      const json = yield* skein("ping", "--count=1", "--json", at)
      const { answered, sent, times } = JSON.parse(json.out[0]!)
      assert.deepStrictEqual([sent, answered, times.length], [1, 1, 1])
    }))
})
