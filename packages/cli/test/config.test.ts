/** `skein-call --config`, with real files and processes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { runCall } from "../src/internal/calls/call.ts"
import type { Invocation } from "../src/internal/calls/call.ts"
import { type CommandFailed, Process } from "../src/internal/base/process.ts"
import { invocationOf } from "./invocation.ts"

/** A server that returns its first argument and the variable KEY. */
const script = `
  const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method } = JSON.parse(line)
    const serverInfo = { name: "s", version: "1" }
    if (method === "initialize") {
      answer(id, { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo })
    } else if (method === "tools/call") {
      answer(id, { content: [{ type: "text", text: process.argv[1] + " " + process.env.KEY }] })
    } else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "" } }))
  })`

const process_ = { command: process.execPath, args: ["-e", script, "${NAME:-nobody}"] }

const config = {
  inputs: [{ id: "key", type: "promptString", description: "API key" }, { id: "other", type: "promptString" }],
  servers: {
    tea: { ...process_, env: { KEY: "${input:key}" } },
    asksOther: { ...process_, env: { KEY: "${input:other}" } },
    web: { url: "https://example.com/${TOKEN:-x}" },
    off: { ...process_, disabled: true },
    bad: { args: [] },
    // A line end must not forge an entry of the list.
    "forged\ntea stdio": { url: "https://example.com/" }
  }
}

const run = (
  server: string | undefined,
  { answers, ...options }: Omit<Partial<Invocation>, "answers"> & { readonly answers?: Array<string> } = {}
) =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-call-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true }))
    )
    const file = join(folder, "mcp.json")
    writeFileSync(file, `// servers\n${JSON.stringify(config)}`)
    const out: Array<string> = []
    const err: Array<string> = []
    const prompts: Array<string> = []
    const exit = yield* Effect.exit(Effect.provideService(
      runCall(invocationOf({ target: { _tag: "Configured", file, server }, ...options })),
      Process,
      {
        env: { NAME: "Ada", PATH: process.env["PATH"] },
        console: { print: (text) => Effect.sync(() => void out.push(text)), warn: (line) => void err.push(line) },
        terminal: answers === undefined ? undefined : {
          writeLine: (line) => Effect.sync(() => void err.push(line)),
          readLine: (prompt) => Effect.sync(() => (prompts.push(prompt), answers.shift()))
        }
      }
    ))
    const failure: CommandFailed | undefined = Exit.isFailure(exit)
      ? (exit.cause.reasons[0] as unknown as { readonly error: CommandFailed }).error
      : undefined
    return { code: failure?.exitCode ?? 0, err, out, prompts, report: failure?.report?.replaceAll(file, "mcp.json") }
  }).pipe(Effect.scoped)

describe("skein-call --config", () => {
  it.live("calls a tool of the server, with the inputs of --input", () =>
    Effect.gen(function*() {
      const { code, out } = yield* run("tea", { inputs: { key: "k" } })
      assert.deepStrictEqual([code, out], [0, ["Ada k"]])
    }))

  it.live("asks the terminal for the inputs of that server alone", () =>
    Effect.gen(function*() {
      const { out, prompts } = yield* run("tea", { answers: ["typed"] })
      assert.deepStrictEqual([out, prompts], [["Ada typed"], ["API key: "]])
    }))

  it.live("reports a server that is missing, disabled or invalid, and an input without a value", () =>
    Effect.gen(function*() {
      const reports: Record<string, string | undefined> = {}
      for (const server of ["nope", "off", "bad", "tea"]) {
        const { code, report } = yield* run(server)
        assert.strictEqual(code, 2)
        reports[server] = report
      }
      assert.deepStrictEqual(reports, {
        nope: "mcp.json has no server \"nope\". It has: tea, asksOther, web, forged tea stdio, off",
        off: "The server \"off\" in mcp.json is disabled",
        bad: "The server \"bad\" in mcp.json:2 has no command and no url",
        tea: "The server \"tea\" in mcp.json:2 uses ${input:key} in env.KEY, an input without a value. " +
          "Set it with --input key=<value>"
      })
      const target = { _tag: "Configured", file: "/nowhere/mcp.json", server: "a" } as const
      const missing = yield* run("a", { target })
      assert.deepStrictEqual([missing.code, missing.report], [2, "/nowhere/mcp.json cannot be read: ENOENT"])
    }))

  it.live("without --server lists the servers, without the values of variables", () =>
    Effect.gen(function*() {
      const { code, err, out } = yield* run(undefined)
      assert.strictEqual(code, 0)
      const lines = out[0]!.split("\n").map((line) => line.replace(/ -e .* (?=\$)/, " -e server.js "))
      assert.deepStrictEqual(lines, [
        `tea  stdio  ${process.execPath} -e server.js \${NAME:-nobody}`,
        `asksOther  stdio  ${process.execPath} -e server.js \${NAME:-nobody}`,
        "web  http  https://example.com/${TOKEN:-x}",
        "forged tea stdio  http  https://example.com/",
        "off  disabled"
      ])
      assert.strictEqual(err.length, 1)
      const json = yield* run(undefined, { json: true })
      assert.deepInclude(JSON.parse(json.out[0]!), { name: "off", type: "disabled", place: "" })
    }))
})
