/** `skein conformance` as a process: with the installed suite, and with a suite that npx starts. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { chmod, mkdir, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { delimiter, join } from "node:path"
import { asWord, makeProject, program, type Project, run, skein } from "./project.ts"

let project: Project

beforeAll(async () => {
  project = await makeProject({
    // The scenario expects this tool.
    "server.ts": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      export default new AsyncServer({ name: "judged", version: "1.0.0" })
        .tool("test_simple_text", {}, () => "This is a simple text response for testing.")`,
    "known.yml": "server:\n  - prompts-get-simple\n",
    "wrong.yml": "server: ping\n"
  })
  // A suite that judges the URL by a session, and writes one result.
  const bin = join(project.folder, "bin")
  await mkdir(bin)
  await writeFile(
    join(bin, "suite.mjs"),
    `
    import { mkdirSync, writeFileSync } from "node:fs"
    const words = process.argv.slice(2)
    const valueOf = (name) => words[words.indexOf(name) + 1]
    const post = (message, session) => fetch(valueOf("--url"), {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...session },
      body: JSON.stringify({ jsonrpc: "2.0", ...message })
    })
    const opened = await post({ id: 1, method: "initialize", params: {
      protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "suite", version: "1" } } })
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") }
    await post({ method: "notifications/initialized" }, session)
    const text = await (await post({ id: 2, method: "tools/list" }, session)).text()
    const folder = valueOf("-o") + "/server-tools/list-2026-01-01T00-00-00-000Z"
    mkdirSync(folder, { recursive: true })
    const status = text.includes("test_simple_text") ? "SUCCESS" : "FAILURE"
    writeFileSync(folder + "/checks.json", JSON.stringify([{ id: "c", name: "c", status, errorMessage: words.join(" ") }]))
    console.error("Failed to run scenario ping: no answer")`
  )
  const script = `#!/bin/sh\necho "$@" > "${bin}/words"\nshift 2\nexec "${process.execPath}" "${bin}/suite.mjs" "$@"\n`
  await writeFile(join(bin, "npx"), script)
  await chmod(join(bin, "npx"), 0o755)
})

afterAll(() => project.remove())

const server = () => asWord([process.execPath, ...program, "run", "server.ts"])
const withNpx = () => ({ PATH: [join(project.folder, "bin"), process.env["PATH"]].join(delimiter) })

describe("skein conformance", () => {
  it("judges a command on stdio with the installed suite, through the bridge", async () => {
    const { code, err, out } = await run(project, ["conformance", "--scenario", "tools-call-simple-text", server()])
    assert.match(
      err,
      /^@modelcontextprotocol\/conformance 0\.2\.0-alpha\.12, against http:\/\/127\.0\.0\.1:\d+\/mcp\n$/
    )
    assert.match(out, /^SCENARIO[^]*\ntools-call-simple-text +passed +(\d+)\/\1\n\n1 scenario: 1 passed\n$/)
    assert.strictEqual(code, 0)
  }, 90_000)

  it("exits with 1 for a scenario that fails, at a URL, unless it is expected to", async () => {
    const running = skein(project, ["run", "--http", "--port", "0", "server.ts"])
    await running.until("Listening on")
    const url = /http:\/\/\S+\/mcp/.exec(running.err())![0]
    const words = ["conformance", "--json", "--scenario", "prompts-get-simple"]
    const failed = await run(project, [...words, url])
    assert.strictEqual(failed.code, 1)
    const report = JSON.parse(failed.out) as {
      readonly conforms: boolean
      readonly scenarios: ReadonlyArray<Readonly<Record<string, unknown>>>
    }
    assert.isFalse(report.conforms)
    assert.deepInclude(report.scenarios[0]!, { scenario: "prompts-get-simple", verdict: "failed" })
    const excused = await run(project, [...words, "--expected-failures", "known.yml", url])
    assert.strictEqual(excused.code, 0)
    running.child.kill("SIGTERM")
    await running.ended
  }, 90_000)

  it("starts another version of the suite with npx, and reports a scenario that did not complete", async () => {
    const args = ["conformance", "--json", "--revision", "2025-11-25", "--suite-version", "9.9.9", server()]
    const { code, out } = await run(project, args, withNpx())
    assert.strictEqual(code, 1)
    const { scenarios } = JSON.parse(out) as { readonly scenarios: ReadonlyArray<Readonly<Record<string, unknown>>> }
    assert.deepInclude(scenarios[0]!, { scenario: "ping", verdict: "failed", detail: "no answer" })
    assert.deepInclude(scenarios[1]!, { scenario: "tools/list", verdict: "passed", passed: 1 })
  }, 60_000)

  it("judges a server that requires a header, and entries of a configuration", async () => {
    const http = createServer(async (request, response) => {
      if (request.headers.authorization !== "Bearer planted") return void response.writeHead(401).end()
      let body = ""
      for await (const chunk of request) body += String(chunk)
      const { id, method } = JSON.parse(body) as { readonly id?: number; readonly method: string }
      if (id === undefined) return void response.writeHead(202).end()
      const result = method === "initialize" ? {} : { tools: [{ name: "test_simple_text" }] }
      response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "s" })
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
    })
    await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
    const stdio = { command: process.execPath, args: [...program, "run", "server.ts"] }
    const remote = { url, headers: { Authorization: "Bearer ${PLANTED}" } }
    await project.write("mcp.json", JSON.stringify({ mcpServers: { remote, stdio } }))
    const verdictOf = async (...args: ReadonlyArray<string>) => {
      const words = ["conformance", "--json", "--suite-version", "9.9.9", ...args]
      const { err, out } = await run(project, words, { ...withNpx(), PLANTED: "planted" })
      const { scenarios } = JSON.parse(out || assert.fail(err)) as {
        readonly scenarios: ReadonlyArray<{ readonly verdict: string }>
      }
      return scenarios[1]?.verdict
    }
    assert.strictEqual(await verdictOf(url), "failed")
    assert.strictEqual(await verdictOf("--header", "Authorization: Bearer planted", url), "passed")
    assert.strictEqual(await verdictOf("--config", "mcp.json", "--server", "remote"), "passed")
    assert.strictEqual(await verdictOf("--config", "mcp.json", "--server", "stdio"), "passed")
    http.closeAllConnections()
    http.close()
  }, 180_000)

  it("exits with 2 for a wrong command line or file, and with 3 if the suite does not run", async () => {
    for (const args of [["--scenario", "a", "--suite", "all", "x"], [], ["--expected-failures", "wrong.yml", "x"]]) {
      assert.strictEqual((await run(project, ["conformance", ...args])).code, 2)
    }
    const { code, err } = await run(project, ["conformance", "--suite-version", "9.9.9", "http://127.0.0.1:1/mcp"], {
      PATH: join(project.folder, "none")
    })
    assert.match(err, /npx cannot be started: /)
    assert.strictEqual(code, 3)
  }, 60_000)
})
