/**
 * Compares the pages of limits (`docs/limits*.md`, and those with limits of their own) with the code. Each default in
 * them is the one that the code uses and the one in the doc comment, and each option with a bound is in them.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Limits from "@skein/runtime/Limits"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as WebHttp from "@skein/server/WebHttp"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Endpoint from "../../packages/server/src/internal/http/access/options.ts"
import * as Terms from "../../packages/tasks/src/internal/protocol/policy.ts"
import { Listening } from "../programs/bounded.ts"
import { Hello } from "../programs/hello.ts"
import { call, modern } from "./process.ts"

const root = join(import.meta.dirname, "../..")
const read = (path: string): string => readFileSync(join(root, path), "utf8")
const pages = [
  ...globSync("docs/limits*.md", { cwd: root }).sort(),
  "docs/openapi.md",
  "docs/apps.md",
  "docs/code-mode.md",
  "docs/effect-applications.md",
  "docs/gateway.md",
  "docs/remote-servers.md",
  "docs/skills.md"
]
const page = pages.map(read).join("\n")

/** The factor of each unit: durations in milliseconds, counts in ones. */
const units: Readonly<Record<string, number>> = {
  "": 1,
  characters: 1,
  MiB: 1024 * 1024,
  Mi: 1024 * 1024,
  Ki: 1024,
  "Ki characters": 1024,
  times: 1,
  "Mi characters": 1024 * 1024,
  ms: 1,
  milliseconds: 1,
  s: 1_000,
  second: 1_000,
  seconds: 1_000,
  min: 60_000,
  minute: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  hours: 3_600_000
}
const amount = (text: string): number | undefined => {
  const [, number = "", unit = ""] = /^([\d,]+|one) ?([A-Za-z ]*)$/.exec(text.trim()) ?? []
  const count = number === "one" ? 1 : Number(number.replaceAll(",", ""))
  return number === "" || units[unit] === undefined ? undefined : count * units[unit]
}

/** The value of a default in the source: a number, a product of numbers, a duration, or the name of one of these. */
const literal = (source: string, text: string): number | undefined => {
  if (/^\d[\d_]*( \* \d[\d_]*)*$/.test(text)) {
    return text.split(" * ").reduce((product, factor) => product * Number(factor.replaceAll("_", "")), 1)
  }
  if (text.startsWith("\"")) return Duration.toMillis(Duration.fromInputUnsafe(JSON.parse(text) as Duration.Input))
  const [, unit, count] = /^Duration\.(\w+)\((\d+)\)$/.exec(text) ?? []
  if (unit !== undefined) return Duration.toMillis(Duration.fromInputUnsafe(`${count} ${unit}` as Duration.Input))
  const named = new RegExp(`const ${text} = (?:/\\* @__PURE__ \\*/ )?(${value})`).exec(source)
  return named === null ? undefined : literal(source, named[1]!)
}
const value = "\\d[\\d_]*(?: \\* \\d[\\d_]*)*|\"\\d+ \\w+\"|Duration\\.\\w+\\(\\d+\\)|[a-z]\\w+"

/** The default of an option in the code: `options.x ?? 5`, `millis(options.x, 5)`, `{ x = 5 }`, `{ timeout: five, …`. */
const filledIn = (commented: string, name: string): number | undefined => {
  const source = commented.replaceAll(/\/\*\*[^]*?\*\//g, "")
  for (const [, text] of source.matchAll(new RegExp(`\\b${name}(?: \\?\\?|,| =|:) (${value})`, "g"))) {
    const found = literal(source, text!)
    if (found !== undefined) return found
  }
  return undefined
}

interface Row {
  readonly option: string
  readonly stated: string
  readonly text: string
}

interface Table {
  readonly declared: string
  readonly code: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
}

/** The name of an option: the last one in a text, without the object that it is in. */
const nameIn = (text: string): string =>
  (Array.from(text.matchAll(/`([\w.]+)`/g), ([, name]) => name!).at(-1) ?? "").split(".").at(-1)!

const rowsOf = (table: string): ReadonlyArray<Row> =>
  table.split("\n").filter((line) => line.startsWith("|")).slice(2).map((line) => {
    const [, first = "", stated = ""] = line.split("|").map((cell) => cell.trim())
    return { option: nameIn(first), stated, text: line }
  })

/** Tables whose rows are of one file, and items of lists, each of which names its files: `<!--bounds:declared,code-->`. */
const tables: ReadonlyArray<Table> = [
  ...Array.from(
    page.matchAll(/<!-- bounds: (\S+)(?: filled in by ([^>]+))? -->\n\n((?:\|.*\n)+)/g),
    ([, declared = "", code, table = ""]) => ({ declared, code: code?.split(" ") ?? [declared], rows: rowsOf(table) })
  ),
  ...Array.from(
    Map.groupBy(page.matchAll(/^- (.*): \*\*([^*]+)\*\*;.*<!--bounds:(\S+)-->$/gm), ([, , , files = ""]) => files),
    ([files, items]) => {
      const [declared = "", ...code] = files.split(",")
      const rows = items.map(([text, option = "", stated = ""]) => ({ option: nameIn(option), stated, text }))
      return { declared, code: code.length === 0 ? [declared] : code, rows }
    }
  )
]

/** The members of the interfaces in a file that have a doc comment. */
const members = (path: string): ReadonlyArray<{ readonly name: string; readonly doc: string }> =>
  Array.from(
    read(path).matchAll(/\/\*\*((?:(?!\*\/)[^])*?)\*\/\n {2,4}readonly (\w+)\?:/g),
    ([, doc = "", name = ""]) => ({ name, doc: doc.replaceAll(/\s*\n\s*\* ?/g, " ").trim() })
  )

const isBound = /^(max[A-Z]?\w*|limit|lifetime|after|timeout|\w+Timeout|keepAliveInterval|pageSize|stableAfter|ttl)$/

describe.each(tables)("limits.md, $declared", ({ code, declared, rows }) => {
  it("lists the defaults of the code", () => {
    const source = code.map(read).join("\n")
    expect(rows.length).toBeGreaterThan(0)
    for (const { option, stated } of rows) {
      expect(amount(stated), `${option}: ${stated}`).toBeDefined()
      expect([option, filledIn(source, option)]).toEqual([option, amount(stated)])
    }
  })

  it("lists the defaults of the doc comments", () => {
    const declared_ = new Map(members(declared).map(({ doc, name }) => [name, doc]))
    for (const { option, stated } of rows) {
      const value =
        /([\d,]+(?: (?:MiB|Mi|Ki|ms|time|\w*second|\w*minute|\w*hour)s?)?|one minute)(?: characters)? by default/
          .exec(
            declared_.get(option) ?? ""
          )?.[1]
      expect([option, amount(value ?? "")]).toEqual([option, amount(stated)])
    }
  })

  it("lists every bound", () => {
    const known = new Set(rows.map(({ option }) => option))
    expect(
      members(declared).filter(({ doc, name }) => isBound.test(name) && /by default/.test(doc) && !known.has(name))
    )
      .toEqual([])
  })
})

describe("limits.md", () => {
  it("reads the default of every item", () => {
    const items = page.match(/<!--bounds:/g)?.length
    expect(page.match(/^- .*`: \*\*[^*]+\*\*;.*<!--bounds:\S+-->$/gm)?.length).toBe(items)
  })

  it("covers every file that declares a bound", () => {
    // Files whose options are not bounds, or are listed with another file, or in prose.
    const others = new Set([
      "packages/server/src/Caching.ts",
      "packages/client/src/Changes.ts",
      "packages/sql/src/SqliteClient.ts",
      "packages/tasks/src/SqlTasks.ts",
      "packages/tasks/src/TaskTools.ts",
      "packages/tasks/src/CurrentTask.ts",
      "packages/tasks/src/internal/protocol/policy.ts"
    ])
    const documented = new Set(tables.map(({ declared }) => declared))
    const sources = globSync(
      "packages/{server,client,sql,tasks,auth,console,openapi,gateway,apps,skills,code-mode}/src/**/*.ts",
      {
        cwd: root
      }
    )
    const missing = sources.filter((path) =>
      !documented.has(path) && !others.has(path) &&
      members(path).some(({ doc, name }) => isBound.test(name) && /\d.*by default|by default.*\d/.test(doc))
    )
    expect(missing).toEqual([])
  })

  it("lists the defaults that `resolve` returns for the endpoint and for connections", () => {
    const given = {
      "server/src/internal/http/access/options": Endpoint.resolve(),
      "runtime/src/Limits": Limits.resolve()
    }
    for (const [path, resolved] of Object.entries(given)) {
      const defaults = new Map<string, unknown>(Object.entries(resolved))
      for (const { option, stated } of tables.find(({ declared }) => declared.includes(path))!.rows) {
        expect([option, amount(stated)]).toEqual([option, defaults.get(option)])
      }
    }
  })

  it("lists the defaults of tasks without options", () => {
    const { limits: { all, client, tool }, maxTtlMs: maxTtl, ttlMs: ttl } = Terms.resolveSettings({})
    const count = (given: number | undefined) => given!.toLocaleString("en")
    const both = ({ live, retained }: typeof all) => `${count(live)} and ${count(retained)}`
    const cells: Readonly<Record<string, string>> = {
      ttl: `${ttl! / 3_600_000} h`,
      maxTtl: `${maxTtl! / 86_400_000} days`,
      "limits.perClient": both(client),
      "limits.perTool": both(tool),
      "limits.all": both(all)
    }
    for (const [option, stated] of Object.entries(cells)) {
      expect(page).toMatch(new RegExp(`^- \`${option}\`: \\*\\*${stated}\\*\\*;`, "m"))
    }
  })

  it("lists the bounds without an option", () => {
    const rows = Array.from(
      page.matchAll(/^- .*: \*\*([^*]+)\*\*;.* <!--([^\s#]+)#(\w+)-->$/gm),
      ([, stated = "", path = "", name = ""]) => ({ stated, path, name })
    )
    expect(rows.length).toBe(page.match(/<!--\S+#\w+-->/g)?.length)
    expect(page, "write a bound as - value: **bound**; … <!--path#name-->").not.toMatch(/<!-- packages\//)
    for (const { name, path, stated } of rows) {
      expect([name, filledIn(read(path), name)]).toEqual([name, amount(stated)])
    }
  })

  it("lists the status and the code at the bounds of an endpoint", async () => {
    const post = (method: string, params: object, headers: Record<string, string>) =>
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
      })
    const initialize = post("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "guide", version: "1" }
    }, {})
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "guide", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {}
    }
    const modern = { "mcp-protocol-version": "2026-07-28" }
    const listen = { ...modern, "mcp-method": "subscriptions/listen" }
    const discover = post("server/discover", { _meta }, { ...modern, "mcp-method": "server/discover" })
    const cases: ReadonlyArray<readonly [string, WebHttp.Options, Request]> = [
      ["maxMessageBytes", { limits: { maxMessageBytes: 10 } }, discover.clone()],
      ["maxInFlightRequests", { limits: { maxInFlightRequests: 0 } }, discover.clone()],
      ["maxStreams", { limits: { maxStreams: 0 } }, post("subscriptions/listen", { notifications: {}, _meta }, listen)],
      ["maxSessions", { limits: { maxSessions: 0 } }, initialize.clone()]
    ]
    const rows = tables.find(({ declared }) => declared.includes("http/access/options"))!.rows
    for (const [option, options, request] of cases) {
      const { close, handler } = WebHttp.mount(Hello, options)
      const answer = await handler(request)
      const { error } = await answer.json() as { readonly error: { readonly code: number } }
      const retry = answer.headers.has("retry-after") ? ", `Retry-After`" : ""
      expect(rows.find((row) => row.option === option)?.text).toContain(`${answer.status}, \`${error.code}\`${retry}`)
      await close()
    }
  })
})

describe("programs/bounded.ts", () => {
  it.live("applies its bounds", () =>
    Effect.gen(function*() {
      const { url } = Context.get(yield* Layer.build(Listening), NodeHttp.Server)
      const ask = (init: RequestInit) => Effect.promise(() => fetch(url, init))
      const statusOf = (init: RequestInit) => Effect.map(ask(init), ({ status }) => status)
      const listed = yield* Effect.flatMap(ask(modern("tools/list")), (answer) => Effect.promise(() => answer.json()))
      expect(listed).toMatchObject({ result: { tools: [{ name: "hello" }, { name: "wait" }] } })
      expect(listed).toHaveProperty("result.nextCursor")
      expect(yield* statusOf(call("hello", { text: "x".repeat(16_384) }))).toBe(413)
      // The stream begins with the progress of the handler, which then waits.
      const leaving = new AbortController()
      const waiting = { ...modern("tools/call", { name: "wait" }, {}, { progressToken: 1 }), signal: leaving.signal }
      expect(yield* statusOf(waiting)).toBe(200)
      expect(yield* statusOf(call("wait"))).toBe(503)
      leaving.abort()
    }))
})
