import { assert, describe, it } from "@effect/vitest"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type { Invocation } from "../src/internal/calls/call.ts"
import { callCommand } from "../src/internal/commands/callCommand.ts"
import { rewrite } from "../src/internal/commands/commandLine.ts"
import { Process, version } from "../src/internal/base/process.ts"
import { runCommand } from "../src/internal/commands/runCommand.ts"
import { serverInvocationOf } from "../src/internal/commands/serverOptions.ts"

/** Runs the command line with a handler that records it. */
const run = (...argv: ReadonlyArray<string>) => {
  let invocation: Invocation | undefined
  let out = ""
  let err = ""
  const command = Command.withHandler(callCommand("skein-call"), (parsed) =>
    Effect.sync(() => {
      invocation = serverInvocationOf(parsed)
    }))
  const code = Effect.runSync(Effect.provideService(runCommand(command, rewrite(command, argv)), Process, {
    env: {},
    console: { print: (text) => Effect.sync(() => void (out += text)), warn: (line) => void (err += `${line}\n`) },
    terminal: undefined
  }))
  return { code, err, invocation, out }
}

const parsed = (...argv: ReadonlyArray<string>): Invocation => {
  const { code, err, invocation } = run(...argv)
  assert.deepStrictEqual([code, err], [0, ""])
  return invocation ?? assert.fail("The command did not run")
}

const target = (...argv: ReadonlyArray<string>) => {
  const { args, target, tool } = parsed(...argv)
  const server = target._tag === "Url"
    ? target.url.href
    : target._tag === "Command"
    ? [target.command, ...target.args]
    : target._tag === "Module"
    ? target.file
    : [target.file, target.server]
  return [server, tool, args]
}

/** The message about a command line that is not valid. */
const wrong = (...argv: ReadonlyArray<string>): string => {
  const { code, err, invocation, out } = run(...argv)
  assert.deepStrictEqual([code, invocation, out], [2, undefined, ""])
  const [, message] = /^skein-call: ([^]*?)\n\n  skein-call \[options\]/.exec(err) ?? []
  return message ?? assert.fail(err)
}

const url = "https://example.com/mcp"

describe("the command line of skein-call", () => {
  it("takes a URL, a tool and its arguments", () => {
    assert.deepStrictEqual(target(url), [url, undefined, undefined])
    assert.deepStrictEqual(target(url, "add"), [url, "add", undefined])
    assert.deepStrictEqual(target(url, "add", "{\"a\":1}"), [url, "add", { a: 1 }])
    assert.deepStrictEqual(target(url, "--", "add"), [url, "add", undefined])
  })

  it("takes a command as one word", () => {
    assert.deepStrictEqual(target("node server.js", "add"), [["node", "server.js"], "add", undefined])
    const quoted = "node 'my server.js' --name \"Ada L\" --x=\"a b\""
    assert.deepStrictEqual(target(quoted, "add", "{}"), [
      ["node", "my server.js", "--name", "Ada L", "--x=a b"],
      "add",
      {}
    ])
  })

  it("takes a command as words, up to `--` or to a tool with a JSON object", () => {
    assert.deepStrictEqual(target("node", "server.js"), [["node", "server.js"], undefined, undefined])
    assert.deepStrictEqual(target("node", "server.js", "--", "add"), [["node", "server.js"], "add", undefined])
    assert.deepStrictEqual(target("node", "server.js", "add", "{\"a\":1}"), [["node", "server.js"], "add", { a: 1 }])
    assert.deepStrictEqual(target("/opt/my server", "--", "add"), [["/opt/my server"], "add", undefined])
    assert.deepStrictEqual(target("server", "--", "add"), [["server"], "add", undefined])
  })

  it("takes the arguments as words", () => {
    const [tea, cups] = [{ name: "tea", given: { text: "a=b" } }, { name: "cups", given: { value: [2] } }]
    assert.deepStrictEqual(target(url, "brew", "tea=a=b", "cups:=[2]"), [url, "brew", [tea, cups]])
    assert.deepStrictEqual(target("node server.js", "brew", "tea=a=b", "--json"), [["node", "server.js"], "brew", [
      tea
    ]])
    assert.deepStrictEqual(target("node", "server.js", "--", "brew", "tea=a=b"), [["node", "server.js"], "brew", [tea]])
    assert.deepStrictEqual(target("--config", "mcp.json", "--server", "tea", "brew", "tea=a=b"), [
      ["mcp.json", "tea"],
      "brew",
      [tea]
    ])
    assert.include(wrong(url, "brew", "tea"), "words of the form name=value, or one JSON object")
    assert.include(wrong(url, "brew", "=tea"), "words of the form name=value, or one JSON object")
    assert.include(wrong(url, "brew", "tea=assam", "{}"), "words of the form name=value, or one JSON object")
    assert.isTrue(wrong(url, "brew", "weight", "2").endsWith("JSON object; write weight=2"))
    assert.isTrue(wrong(url, "brew", "tea=assam", "key", "planted").endsWith("JSON object; write key=<value>"))
    for (const option of [["--weight", "2"], ["--weight=2"]]) {
      assert.strictEqual(
        wrong(url, "brew", ...option),
        "Unknown option --weight; write an argument of the tool as weight=<value>"
      )
    }
    const secret = wrong(url, "brew", "tea:=planted")
    assert.include(secret, "The tool's argument tea is not valid JSON after :=")
    assert.notInclude(secret, "planted")
  })

  it("takes a module, with options after its path", () => {
    const file = import.meta.filename
    const { json, target: module, tool } = parsed(file, "--export", "Tea", "brew", "--json")
    assert.deepStrictEqual([module, tool, json], [{ _tag: "Module", file }, "brew", true])
    assert.deepStrictEqual(parsed(`${file}.none`).target, { _tag: "Command", command: `${file}.none`, args: [] })
    assert.include(wrong("--export", "Tea", url), "--export needs a module")
    assert.include(wrong(file, "--header", "a: b"), "--header needs a server with a URL")
    assert.include(wrong(file, "--login"), "--login needs a server with a URL")
  })

  it("passes the words of a command on as they are, quotes and all", () => {
    const words = ["node", "it's", "a \"b\"", "'\"", "", " ", "$HOME", "\\", "a\nb"]
    assert.deepStrictEqual(target(...words), [words, undefined, undefined])
    assert.deepStrictEqual(target(...words, "--", "add", "{}"), [words, "add", {}])
  })

  it("leaves the options of a server to the server", () => {
    assert.deepStrictEqual(target("--json", "node", "server.js", "--json", "--", "add", "--verbose"), [
      ["node", "server.js", "--json"],
      "add",
      undefined
    ])
    assert.deepStrictEqual(target("node", "server.js", "--help"), [
      ["node", "server.js", "--help"],
      undefined,
      undefined
    ])
  })

  it("takes options", () => {
    const options = [
      "--header",
      "Authorization: Bearer a:b",
      "--header=X-A:b",
      "--timeout",
      "1.5",
      "--json",
      "--verbose"
    ]
    const expected = {
      headers: { Authorization: "Bearer a:b", "X-A": "b" },
      json: true,
      timeout: 1_500,
      verbose: true
    }
    for (const argv of [[url, "add", ...options], [...options, url, "add"], [url, ...options, "add"]]) {
      const { headers, json, timeout, tool, verbose } = parsed(...argv)
      assert.deepStrictEqual({ headers, json, timeout, verbose }, expected)
      assert.strictEqual(tool, "add")
    }
    const { env } = parsed("--env", "KEY", "--env", "A=b=c", "server")
    assert.deepStrictEqual(env, { KEY: undefined, A: "b=c" })
  })

  it("takes the last of an option that is repeated", () => {
    const { json, timeout } = parsed("--timeout", "1", "--json", "--json", "--timeout=2", url)
    assert.deepStrictEqual({ json, timeout }, { json: true, timeout: 2_000 })
  })

  it("takes any word as the value of an option", () => {
    assert.deepStrictEqual(parsed("--resume", "-t1", url).resume, { taskId: "-t1" })
    assert.deepStrictEqual(parsed("--header", "--a: b", url).headers, { "--a": "b" })
  })

  it("takes a server of a configuration", () => {
    const config = ["--config", "mcp.json"]
    assert.deepStrictEqual(target(...config), [["mcp.json", undefined], undefined, undefined])
    assert.deepStrictEqual(target(...config, "--server", "tea"), [["mcp.json", "tea"], undefined, undefined])
    assert.deepStrictEqual(target("--config=mcp.json", "--server", "tea", "add", "{}"), [
      ["mcp.json", "tea"],
      "add",
      {}
    ])
    assert.deepStrictEqual(target(...config, "add", "{\"a\":1}", "--server", "tea"), [["mcp.json", "tea"], "add", {
      a: 1
    }])
    assert.deepStrictEqual(target(...config, "--server", "--", "--", "add"), [["mcp.json", "--"], "add", undefined])
    assert.deepStrictEqual(parsed(...config, "--server", "tea", "--input", "a=b=c").inputs, { a: "b=c" })
    assert.deepStrictEqual(parsed(...config, "--server", "tea", "--resume", "t1").resume, { taskId: "t1" })
    // After the words of a server, `--config` belongs to the server.
    assert.deepStrictEqual(target("node", "server.js", "--config", "x"), [
      ["node", "server.js", "--config", "x"],
      undefined,
      undefined
    ])
    assert.include(wrong(...config, "add"), "--server is required")
    assert.include(wrong(...config, "tea", "add", "{}"), "--server is required")
    assert.include(wrong("--server", "tea", url), "--server needs --config")
    assert.include(wrong(...config, "--server", "tea", "--header", "a: b"), "--header")
    assert.include(wrong(...config, "--server", "tea", "--env", "A"), "--env")
    assert.include(wrong(...config, "--server", "tea", "--input", "secret"), "--input needs the form")
  })

  it("takes a task by its handle or its id", () => {
    const handle = { taskId: "t1", tool: "cater", server: "tea-house", revision: "2026-07-28" }
    const { leave, resume, tool } = parsed("--leave", "--resume", JSON.stringify(handle), url)
    assert.deepStrictEqual({ leave, resume, tool }, { leave: true, resume: handle, tool: undefined })
    assert.deepStrictEqual(parsed("--resume=t1", "node", "server.js").resume, { taskId: "t1" })
    assert.deepStrictEqual(parsed(url, "add").resume, undefined)
    for (const bad of ["{}", "{\"taskId\":1}", "{"]) assert.include(wrong("--resume", bad, url), "the handle of a task")
    assert.include(wrong("--resume", "t1", url, "add"), "cannot call a tool: add")
  })

  it("shows its help", () => {
    for (const argv of [["--help"], ["-h"], [url, "--help"]]) {
      const { code, err, invocation, out } = run(...argv)
      assert.deepStrictEqual([code, err, invocation], [0, "", undefined])
      assert.match(out, /^Calls a tool/)
      const withValues =
        "header env export config server input timeout revision client-id issuer redirect-uri scope port answer answers resume"
      for (const option of withValues.split(" ")) assert.match(out, new RegExp(`^  --${option} ['<N]`, "m"))
      for (const line of out.split("\n")) assert.isAtMost(line.length, 120)
    }
  })

  it("reports what is wrong", () => {
    assert.include(wrong(), "A server is required")
    assert.include(wrong("--", "add"), "A server is required")
    assert.include(wrong("--what", url), "Unknown option --what")
    for (const builtIn of ["--wizard", "--completions", "--log-level", "--no-json"]) {
      assert.include(wrong(builtIn, url), `Unknown option ${builtIn}`)
    }
    assert.include(wrong(url, "add", "{}", "more"), "Unexpected arguments: more")
    assert.include(wrong(url, "add", "{a:1}"), "not valid JSON")
    assert.include(wrong(url, "add", "[1]"), "JSON object")
    assert.include(wrong("--header", "no colon", url), "--header")
    assert.include(wrong("--header", "a: b", "server"), "--header")
    assert.include(wrong("--timeout", "soon", url), "--timeout")
    assert.include(wrong("--timeout", "90000", url), "86400")
    assert.include(wrong(url, "--timeout"), "needs a value")
    assert.include(wrong("https://"), "not valid")
  })

  it("prints its version", () => {
    const { code, invocation, out } = run("--version")
    assert.deepStrictEqual([code, invocation, out], [0, undefined, version])
  })

  it("quotes no value that can be a secret", () => {
    for (const argv of [["--header", "secret"], ["--env", "=secret"], ["--resume", "{secret"], ["--input", "secret"]]) {
      assert.notInclude(wrong(...argv, url), "secret")
    }
  })
})
