/** The command lines of the commands about a server, and text of hostile servers. */
import { assert, describe, it } from "@effect/vitest"
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { infoText, promptTable, resourceTable, templateTable, toolTable } from "../src/internal/calls/inspect.ts"
import { Process } from "../src/internal/base/process.ts"
import { runCommand } from "../src/internal/commands/runCommand.ts"
import {
  completeCommand,
  inspectCommand,
  logsCommand,
  pingCommand,
  promptCommand,
  readCommand,
  subscribeCommand
} from "../src/internal/commands/serverCommands.ts"
import { serverInvocationOf, type ServerLine } from "../src/internal/commands/serverOptions.ts"
import { skeinArguments } from "../src/internal/commands/skeinCommand.ts"
import { answering, listen, skein, starting } from "./serverKit.ts"

/** Runs the command line with handlers that record it. */
const run = (...argv: ReadonlyArray<string>) => {
  let line: Readonly<Record<string, unknown>> = {}
  let [out, err] = ["", ""]
  const record = (parsed: ServerLine) => Effect.sync(() => void (line = { ...serverInvocationOf(parsed) }))
  const recording = Command.make("skein").pipe(Command.withSubcommands([
    Command.withHandler(inspectCommand, record),
    Command.withHandler(readCommand, record),
    Command.withHandler(promptCommand, record),
    Command.withHandler(completeCommand, record),
    Command.withHandler(pingCommand, record),
    Command.withHandler(logsCommand, record),
    Command.withHandler(subscribeCommand, record)
  ]))
  const process = {
    env: {},
    console: {
      print: (text: string) => Effect.sync(() => void (out += text)),
      warn: (text: string) => void (err += `${text}\n`)
    },
    terminal: undefined
  }
  const code = Effect.runSync(Effect.provideService(runCommand(recording, skeinArguments(argv)), Process, process))
  return { code, err, line, out }
}

/** The members of a parsed command line. */
const parsed = (argv: ReadonlyArray<string>, ...members: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const { code, err, line } = run(...argv)
  assert.deepStrictEqual([code, err], [0, ""])
  const { args, command } = line["target"] as { readonly command?: string; readonly args?: ReadonlyArray<string> }
  return [command === undefined ? "url" : [command, ...args ?? []].join(" "), ...members.map((name) => line[name])]
}

/** The message about a command line that is not valid. */
const wrong = (...argv: ReadonlyArray<string>): string => {
  const { code, err, out } = run(...argv)
  assert.deepStrictEqual([code, out], [2, ""])
  return /^skein: ([^]*?)\n\n/.exec(err)?.[1] ?? assert.fail(err)
}

const url = "https://tea.example/mcp"
const commands = ["inspect", "read", "prompt", "complete", "ping", "logs", "subscribe"] as const

describe("the command lines about a server", () => {
  it("take the server as a URL, as one word, as words, and from a configuration", () => {
    assert.deepStrictEqual(parsed(["read", url, "shop://a"], "uri"), ["url", "shop://a"])
    assert.deepStrictEqual(parsed(["read", "node a.mjs", "shop://a"], "uri"), ["node a.mjs", "shop://a"])
    assert.deepStrictEqual(parsed(["read", "node", "a.mjs", "--json", "shop://a"], "uri", "json"), [
      "node a.mjs --json",
      "shop://a",
      false
    ])
    assert.deepStrictEqual(parsed(["read", "node", "a.mjs", "--", "shop://a", "--json"], "uri", "json"), [
      "node a.mjs",
      "shop://a",
      true
    ])
    assert.deepStrictEqual(parsed(["prompt", "node", "a.mjs", "review"], "name", "args"), [
      "node a.mjs",
      "review",
      undefined
    ])
    assert.deepStrictEqual(parsed(["prompt", "node", "a.mjs", "review", "{\"a\":\"1\"}"], "name", "args"), [
      "node a.mjs",
      "review",
      { a: "1" }
    ])
    assert.deepStrictEqual(parsed(["prompt", "node", "a.mjs", "review", "a=1", "b=c=d"], "name", "args"), [
      "node a.mjs",
      "review",
      { a: "1", b: "c=d" }
    ])
    assert.deepStrictEqual(parsed(["complete", "./server", "review", "a", ""], "of", "argument", "typed"), [
      "./server",
      "review",
      "a",
      ""
    ])
    assert.deepStrictEqual(parsed(["complete", "node a.mjs", "review", "a"], "of", "typed"), [
      "node a.mjs",
      "review",
      ""
    ])
    assert.deepStrictEqual(parsed(["subscribe", "node", "a.mjs", "shop://a", "shop://b"], "uris"), [
      "node a.mjs",
      ["shop://a", "shop://b"]
    ])
    assert.deepStrictEqual(parsed(["subscribe", "node", "C:\\a.mjs"], "uris"), ["node C:\\a.mjs", []])
    const { line } = run("read", "--config", "mcp.json", "--server", "tea", "shop://a", "--output", "file")
    assert.deepStrictEqual(line["target"], { _tag: "Configured", file: "mcp.json", server: "tea" })
    assert.deepStrictEqual([line["uri"], line["output"]], ["shop://a", "file"])
  })

  it("take the options of a call", () => {
    for (const [command, ...operands] of [["inspect"], ["ping"], ["logs"], ["read", "shop://a"], ["prompt", "p"]]) {
      const { code, line } = run(
        command!,
        "--login",
        "--port=8400",
        "--header",
        "A: b",
        "--timeout=2",
        "--verbose",
        "--revision",
        "2025-06-18",
        url,
        ...operands
      )
      const { headers, revision, signIn, timeout, verbose } = line
      assert.deepStrictEqual(
        { code, headers, revision, timeout, verbose },
        { code: 0, headers: { A: "b" }, revision: "2025-06-18", timeout: 2_000, verbose: true }
      )
      assert.deepInclude(signIn, { port: 8400 })
    }
  })

  it("report what is wrong", () => {
    for (const command of commands) {
      const operands = { read: ["shop://a"], prompt: ["p"], complete: ["p", "a"] }[command as string] ?? []
      assert.include(
        wrong(command, "--revision", "2020-01-01", url, ...operands),
        "--revision must be one of 2024-11-05"
      )
      assert.include(wrong(command, "--paste", url, ...operands), "need --login")
      assert.include(wrong(command, "--server", "tea", url, ...operands), "--server needs --config")
      assert.include(wrong(command, "--what", url, ...operands), "Unknown option --what")
      assert.include(
        wrong(command, "--header", "A: b", "node a.mjs", ...operands),
        "--header needs a server with a URL"
      )
    }
    for (const command of ["inspect", "ping", "logs", "subscribe"]) {
      assert.include(wrong(command), "A server is required")
      assert.include(wrong(command, "--config", "mcp.json"), "--server is required")
    }
    assert.include(wrong("read", url), "<uri> is required")
    assert.include(wrong("read", url, "menu"), "<uri> must be the URI of a resource: \"menu\"")
    assert.include(wrong("read", url, "shop://a", "shop://b"), "Unexpected arguments")
    assert.include(wrong("prompt", url), "<name> is required")
    assert.include(wrong("prompt", url, "p", "{"), "The prompt's arguments are not valid JSON")
    assert.include(wrong("prompt", url, "p", "{\"a\":1}"), "The values of the prompt's arguments must be strings")
    assert.include(wrong("complete", url, "p"), "<argument> is required")
    assert.include(wrong("complete", "--with", "a", url, "p", "a"), "--with needs the form <name>=<value>")
    for (const count of ["0", "-1", "1.5", "x", "1000001"]) {
      assert.include(wrong("ping", `--count=${count}`, url), "--count")
    }
    assert.include(wrong("ping", "--interval", "0", url), "--interval must be a number of seconds")
    assert.include(wrong("logs", "--level", "loud", url), "--level must be one of debug, info")
    assert.include(wrong("inspect", "--answer", "a=b", url), "Unknown option --answer")
  })

  it("show help with examples and exit codes", () => {
    for (const command of commands) {
      const { code, out } = run(command, "--help")
      assert.strictEqual(code, 0)
      for (const line of out.split("\n")) assert.isAtMost(line.length, 120)
      assert.match(out, new RegExp(`^Examples:\n  skein ${command} .*tea|example.com`, "m"))
      assert.match(out.replaceAll("\n", " "), /Exit codes: 0 success, 2 invalid command line, 3 .*, 130 interrupted\./)
    }
  })
})

describe("the exit codes", () => {
  it.live("are 3 without a connection, and after --timeout", () =>
    Effect.gen(function*() {
      const silent = yield* listen(() => {})
      for (const [command, ...operands] of [["inspect"], ["read", "shop://a"], ["ping"], ["logs"], ["subscribe"]]) {
        const unreachable = yield* skein(command!, "http://127.0.0.1:1/mcp", ...operands)
        assert.deepStrictEqual([unreachable.code, unreachable.out], [3, []])
        const late = yield* skein(command!, "--timeout", "0.2", silent, ...operands)
        assert.deepStrictEqual([late.code, late.err], [3, ["skein: The client did not connect within 200 ms"]])
      }
    }))

  it.live("are 3 if some requests of ping are not answered, which are printed", () =>
    Effect.gen(function*() {
      const url = yield* listen(async (request, response) => {
        let body = ""
        for await (const chunk of request) body += String(chunk)
        if (request.method !== "POST") return void response.writeHead(405).end()
        const { id, method } = JSON.parse(body)
        if (id === undefined) return void response.writeHead(202).end()
        // Every second request is not answered.
        if (method === "ping" && pings++ % 2 === 0) return
        const result = method === "initialize"
          ? { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "slow", version: "1" } }
          : {}
        response.writeHead(200, { "content-type": "application/json" })
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
      })
      let pings = 0
      const line = ["ping", "--revision=2025-06-18", "--timeout", "1", "--count", "2", "--interval", "0.01", url]
      const { code, err, out } = yield* skein(...line)
      assert.deepStrictEqual([code, err.length, out.length], [3, 1, 2])
      assert.match(err[0]!, /^1 {2}no answer in \d+\.\d+ ms$/)
      assert.match(out[0]!, /^2 {2}\d+\.\d+ ms$/)
      assert.match(out[1]!, /^1 of 2 answered: /)
    }))

  it.live("are 4 for a server that lacks the method, and lists that it refuses do not hide the others", () =>
    Effect.gen(function*() {
      const url = yield* answering({
        initialize: {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {}, resources: {}, prompts: {} },
          serverInfo: { name: "half", version: "1" }
        },
        "tools/list": { tools: [{ name: "t", inputSchema: { type: "object" } }] },
        "resources/list": { resources: [] }
      }, (method) => ({ code: method === "prompts/list" ? -32603 : -32601, message: "\u001b[2J" }))
      const inspect = yield* skein("inspect", "--tools", "--resources", "--templates", "--prompts", url)
      assert.deepStrictEqual([inspect.code, inspect.out], [4, ["TOOL\nt"]])
      assert.deepStrictEqual(inspect.err, [
        "The server has no resources",
        "The prompts are not shown: prompts/list: \\u{1b}[2J"
      ])
      assert.strictEqual((yield* skein("complete", url, "p", "a")).code, 4)
      assert.strictEqual((yield* skein("logs", url)).code, 4)
    }))
})

describe("inspect --lint", () => {
  const serving = (tools: ReadonlyArray<unknown>) =>
    answering({
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "linted", version: "1" }
      },
      "tools/list": { tools }
    }, (method) => ({ code: -32601, message: method }))

  it.live("shows what providers refuse in the names and schemas of tools, and succeeds", () =>
    Effect.gen(function*() {
      const url = yield* serving([
        { name: "fine", inputSchema: { type: "object", properties: { a: { type: "string" } } } },
        {
          name: "find.all",
          inputSchema: {
            type: "object",
            properties: { "a b": { type: "string" }, n: { type: "number", exclusiveMinimum: 0 }, "evil\u001b[2J": {} },
            anyOf: [{ required: ["a b"] }, { required: ["n"] }]
          }
        }
      ])
      const { code, err, out } = yield* skein("inspect", "--lint", url)
      assert.deepStrictEqual([code, err], [0, []])
      const rows = out.join("\n").split("\n").map((row) => row.split(/ {2,}/))
      assert.deepStrictEqual(rows[0], ["TOOL", "REFUSED BY", "AT", "REFUSED", "THE MODEL LOSES"])
      assert.isTrue(rows.slice(1).every(([tool]) => tool === "find.all"))
      assert.deepStrictEqual(rows[1], ["find.all", "all", "the name", "the model receives another name"])
      assert.isTrue(
        rows.some((row) => row[1] === "Gemini" && row.includes("exclusiveMinimum") && row.at(-1) === "greater than 0")
      )
      assert.isTrue(rows.some((row) => row.includes("the property name \"a b\"") && row.at(-1) === "nothing"))
      assert.notInclude(out.join(""), "\u001b")
      const json = JSON.parse((yield* skein("inspect", "--lint", "--json", url)).out[0]!)
      assert.deepStrictEqual(Object.keys(json), ["lint"])
      assert.deepInclude(json.lint, {
        tool: "find.all",
        provider: "Gemini",
        at: "n",
        refused: "exclusiveMinimum",
        weakened: "greater than 0"
      })
      const both = yield* skein("inspect", "--lint", "--tools", url)
      assert.match(both.out[0]!, /^TOOL +REFUSED BY[^]*\n\nTOOL +ARGUMENTS/)
    }))

  it.live("says that every provider accepts the tools", () =>
    Effect.gen(function*() {
      const url = yield* serving([{ name: "fine", inputSchema: { type: "object", properties: {} } }])
      const { code, err, out } = yield* skein("inspect", "--lint", url)
      assert.deepStrictEqual([code, out, err], [0, [], [
        "Every provider accepts the names and the schemas of the tools"
      ]])
    }))
})

it("the tables of inspect have 24 arguments of a tool and of a prompt", () => {
  const names = Array.from({ length: 60_000 }, (_, at) => `a${at}`)
  const properties = Object.fromEntries(names.map((name) => [name, {}]))
  const tables = [
    toolTable([{ name: "t", inputSchema: { type: "object", properties } } as Tool]),
    promptTable([{ name: "p", arguments: names.map((name) => ({ name })) } as Prompt])
  ]
  for (const table of tables) {
    const lines = table.split("\n")
    assert.strictEqual(lines.length, 1 + 24 + 1)
    assert.strictEqual(lines.at(-1)!.trim(), "…")
  }
})

describe("a hostile text", () => {
  const evil =
    "\u001b]0;title\u0007\u001b[2J\u009b31m\u202eabc\u2066\u200b\u0000\u0008\rover\nTOOL forged\u2028\ufeff\u{e0041}"
  const clean = (text: string) => assert.notMatch(text, /[\p{Cf}\p{Zl}\p{Zp}]|[^\n\P{Cc}]|^TOOL forged/mu)

  it("is escaped in the tables of inspect, and begins no line", () => {
    const schema = { type: "object", properties: { [evil]: { type: evil } }, required: [evil] }
    clean(toolTable([{ name: evil, description: evil, inputSchema: schema } as unknown as Tool]))
    const args = [{ name: evil }, { name: evil, required: true }]
    clean(promptTable([{ name: evil, description: evil, arguments: args } as Prompt]))
    clean(resourceTable([{ name: evil, uri: evil, mimeType: evil, title: evil, description: evil } as Resource]))
    clean(templateTable([{ name: evil, uriTemplate: evil, mimeType: evil, description: evil } as ResourceTemplate]))
    clean(infoText(
      {
        capabilities: { experimental: { [evil]: {} }, extensions: { [evil]: {} }, tools: { [evil]: true } },
        era: "session",
        instructions: evil,
        revision: "2025-11-25",
        server: { name: evil, version: evil, title: evil, websiteUrl: evil }
      } as Parameters<typeof infoText>[0]
    ))
  })

  it("takes linear time: ten thousand tools with long names", () => {
    const tool = { name: "x".repeat(10_000), inputSchema: { type: "object" } } as Tool
    assert.isBelow(toolTable(Array.from({ length: 10_000 }, () => tool)).length, 1_000_000)
  })

  it.live("does not reach a terminal from a resource, a prompt or suggestions", () =>
    Effect.gen(function*() {
      const url = yield* answering({
        initialize: {
          protocolVersion: "2025-06-18",
          capabilities: { resources: {}, completions: {} },
          serverInfo: { name: "evil", version: "1" }
        },
        "resources/read": { contents: [{ uri: evil, blob: "AAAA", mimeType: evil }] },
        "completion/complete": { completion: { values: [evil, "fine"] } }
      }, () => ({ code: -32601, message: evil }))
      const read = yield* starting(["read", url, "shop://a"], { isTerminal: true }).running
      assert.strictEqual(read.code, 2)
      clean(read.err.join("\n"))
      const complete = yield* skein("complete", url, "p", "a")
      assert.strictEqual(complete.out[0]!.split("\n").length, 2)
      clean(complete.out[0]!)
    }))
})
