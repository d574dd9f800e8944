import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { parse } from "../../src/internal/command/invocation.ts"

const read = (...argv: ReadonlyArray<string>) => parse(argv, { env: { KEY: "secret" } })

const parsed = (...argv: ReadonlyArray<string>) => {
  const invocation = Result.getOrThrow(read(...argv))
  return invocation === "help" ? assert.fail("This asks for help") : invocation
}

const target = (...argv: ReadonlyArray<string>) => {
  const parsed = Result.getOrThrow(read(...argv))
  if (parsed === "help") return "help"
  const { args, target, tool } = parsed
  const server = target._tag === "Url" ? target.url.href : [target.command, ...target.args]
  return [server, tool, args]
}

const wrong = (...argv: ReadonlyArray<string>) => Result.getOrThrow(Result.flip(read(...argv)))

const url = "https://example.com/mcp"

describe("the arguments of skein-call", () => {
  it("an address, a tool and its arguments", () => {
    assert.deepStrictEqual(target(url), [url, undefined, undefined])
    assert.deepStrictEqual(target(url, "add"), [url, "add", undefined])
    assert.deepStrictEqual(target(url, "add", "{\"a\":1}"), [url, "add", { a: 1 }])
  })

  it("a command as one word", () => {
    assert.deepStrictEqual(target("node server.js", "add"), [["node", "server.js"], "add", undefined])
    const quoted = "node 'my server.js' --name \"Ada L\" --x=\"a b\""
    assert.deepStrictEqual(target(quoted, "add", "{}"), [
      ["node", "my server.js", "--name", "Ada L", "--x=a b"],
      "add",
      {}
    ])
  })

  it("a command as words: `--` or the JSON object says where it ends", () => {
    assert.deepStrictEqual(target("node", "server.js"), [["node", "server.js"], undefined, undefined])
    assert.deepStrictEqual(target("node", "server.js", "--", "add"), [["node", "server.js"], "add", undefined])
    assert.deepStrictEqual(target("node", "server.js", "add", "{\"a\":1}"), [["node", "server.js"], "add", { a: 1 }])
    assert.deepStrictEqual(target("/opt/my server", "--", "add"), [["/opt/my server"], "add", undefined])
    assert.deepStrictEqual(target("server", "--", "add"), [["server"], "add", undefined])
  })

  it("the options of a server are its own", () => {
    assert.deepStrictEqual(target("--json", "node", "server.js", "--json", "--", "add", "--verbose"), [
      ["node", "server.js", "--json"],
      "add",
      undefined
    ])
  })

  it("options", () => {
    const options = [
      "--header",
      "Authorization: Bearer a:b",
      "--header=X-A:b",
      "--timeout",
      "1.5",
      "--json",
      "--verbose"
    ]
    const { headers, json, timeout, verbose } = parsed(url, "add", ...options)
    assert.deepStrictEqual({ headers, json, timeout, verbose }, {
      headers: { Authorization: "Bearer a:b", "X-A": "b" },
      json: true,
      timeout: 1_500,
      verbose: true
    })
    const { env } = parsed("--env", "KEY", "--env", "A=b=c", "server")
    assert.deepStrictEqual(env, { KEY: "secret", A: "b=c" })
    for (const help of ["--help", "-h"]) assert.strictEqual(target(help), "help")
    assert.strictEqual(target(url, "--help"), "help")
  })

  it("a task that goes on, by its handle or its id", () => {
    const handle = { taskId: "t1", tool: "cater", server: "tea-house", revision: "2026-07-28" }
    const { leave, resume, tool } = parsed("--leave", "--resume", JSON.stringify(handle), url)
    assert.deepStrictEqual({ leave, resume, tool }, { leave: true, resume: handle, tool: undefined })
    assert.deepStrictEqual(parsed("--resume=t1", "node", "server.js").resume, { taskId: "t1" })
    assert.deepStrictEqual(parsed(url, "add").resume, undefined)
    for (const bad of ["{}", "{\"taskId\":1}", "{"]) assert.include(wrong("--resume", bad, url), "the handle of a task")
    assert.include(wrong("--resume", "t1", url, "add"), "calls no tool: add")
  })

  it("what is wrong is said", () => {
    assert.include(wrong(), "Which server?")
    assert.include(wrong("--", "add"), "Which server?")
    assert.include(wrong("--what", url), "--what is no option")
    assert.include(wrong(url, "add", "{}", "more"), "more")
    assert.include(wrong(url, "add", "{a:1}"), "no JSON")
    assert.include(wrong(url, "add", "[1]"), "JSON object")
    assert.include(wrong("--header", "no colon", url), "--header")
    assert.include(wrong("--header", "a: b", "server"), "--header")
    assert.include(wrong("--timeout", "soon", url), "--timeout")
    assert.include(wrong("--timeout", "90000", url), "86400")
    assert.include(wrong(url, "--timeout"), "needs a value")
    assert.include(wrong("https://"), "no address")
  })
})
