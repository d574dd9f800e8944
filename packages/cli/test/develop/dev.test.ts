/** `skein dev` as a process, with clients of the official SDK that stay connected while the server is edited. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import * as Sdk from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema
} from "@modelcontextprotocol/sdk/types.js"
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises"
import { delimiter, join } from "node:path"
import { isAlive, makeProject, program, type Project, skein } from "./project.ts"

/** A server whose tool `greet` answers with this text, and whose other tools are here to end it and to log. */
const source = (answer: string, more = ""): string => `
import { AsyncServer } from "@skein/server/AsyncServer"
import * as Catalog from "@skein/server/Catalog"
import * as Effect from "effect/Effect"
import * as Tool from "@skein/server/Tool"
export default new AsyncServer({ name: "greeter", version: "1.0.0" })
  .tool("greet", {}, () => ${JSON.stringify(answer)})
  .tool("wait", {}, () => new Promise(() => {}))
  .tool("pid", {}, () => String(process.pid))
  .tool("exit", {}, () => process.exit(7))
  .resource("tea://menu", {}, () => "sencha")
  .use(Tool.layer(Tool.make("touch"), () => Effect.as(Catalog.updated("tea://menu"), "touched")))
  ${more}
`

let project: Project
beforeEach(async () => {
  project = await makeProject({ "server.ts": source("one") })
})
afterEach(() => project.remove())

const until = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
  while (!await condition()) await new Promise((resolve) => setTimeout(resolve, 25))
}

/** A client of the official SDK. `changes` counts the notifications about the list of tools. */
const connect = async (transport: Transport) => {
  const client = new Client({ name: "host", version: "1.0.0" })
  const counts = { changes: 0, updates: 0, logs: 0 }
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void counts.changes++)
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void counts.updates++)
  client.setNotificationHandler(LoggingMessageNotificationSchema, () => void counts.logs++)
  await client.connect(transport)
  const call = async (name: string): Promise<string> => {
    const { content } = await client.callTool({ name, arguments: {} })
    return (content as ReadonlyArray<{ readonly text: string }>)[0]!.text
  }
  return { client, counts, call }
}

const stdio = (...args: ReadonlyArray<string>) => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...program, "dev", ...args],
    cwd: project.folder,
    stderr: "pipe"
  })
  let err = ""
  transport.stderr!.on("data", (chunk: Buffer) => void (err += chunk.toString("utf8")))
  return { transport, err: () => err }
}

describe("skein dev · stdio", () => {
  it("keeps an official client connected while the server is edited, and repeats its handshake", async () => {
    const { err, transport } = stdio("server.ts")
    const { call, client, counts } = await connect(transport)
    assert.strictEqual(client.getServerVersion()?.name, "greeter")
    assert.strictEqual(await call("greet"), "one")
    await client.subscribeResource({ uri: "tea://menu" })
    const first = Number(await call("pid"))

    // A request with effects fails, and the next one waits for the new server.
    const waiting = client.callTool({ name: "wait", arguments: {} }).then(() => "done", (error: Error) => error.message)
    await call("greet")
    await project.write("server.ts", source("two", ".tool(\"more\", {}, () => \"more\")"))
    assert.match(
      await waiting,
      /The server was restarted because server\.ts changed, before it answered: send the request again/
    )
    assert.strictEqual(await call("greet"), "two")
    await until(() => counts.changes > 0)
    assert.include((await client.listTools()).tools.map(({ name }) => name), "more")
    assert.isFalse(isAlive(first))
    // The subscription is that of the new server.
    await call("touch")
    await until(() => counts.updates > 0)
    assert.match(err(), /skein dev: Restarting: server\.ts changed/)

    // A server that does not start.
    await project.write("server.ts", "export default {")
    await until(() => err().includes("Waiting for a change"))
    assert.match(err(), /server\.ts cannot be loaded/)
    const refusal = await client.callTool({ name: "greet", arguments: {} }).then(
      () => "",
      (error: Error) => error.message
    )
    assert.match(
      refusal,
      /The server does not run: The server exited with code 2; [^]*It starts again when a file changes/
    )
    await client.ping()
    await project.write("server.ts", source("three"))
    await until(async () => await call("greet").catch(() => "") === "three")

    // A server whose process ends.
    const exited = await client.callTool({ name: "exit", arguments: {} }).then(
      () => "",
      (error: Error) => error.message
    )
    assert.match(exited, /The server ended before it answered: The server exited with code 7/)
    await project.write("server.ts", source("four"))
    await until(async () => await call("greet").catch(() => "") === "four")
    const last = Number(await call("pid"))
    await client.close()
    await until(() => !isAlive(last))
  }, 120_000)

  it("answers initialize for a server that does not start, and sends its lists when it does", async () => {
    await project.write("server.ts", "throw new Error(\"no tea\")")
    const { err, transport } = stdio("server.ts")
    const { call, client, counts } = await connect(transport)
    assert.match(client.getInstructions() ?? "", /The server does not run: The server exited with code 2; [^]*no tea/)
    assert.match(err(), /no tea/)
    await project.write("server.ts", source("one"))
    await until(() => counts.changes > 0)
    assert.strictEqual(await call("greet"), "one")
    await client.close()
  }, 60_000)

  it("restarts a command, and watches the files of --watch only", async () => {
    await project.write("data.json", "1")
    const command = `"${process.execPath}" --conditions=@skein/source "${program[1]!}" run server.ts`
    const { err, transport } = stdio("--watch", "data.json", command)
    const { call, client } = await connect(transport)
    const first = await call("pid")
    await project.write("server.ts", source("two"))
    await project.write("data.json", "2")
    await until(() => err().includes("Restarting: data.json changed"))
    assert.notStrictEqual(await call("pid"), first)
    assert.strictEqual(await call("greet"), "two")
    assert.notInclude(err(), "server.ts changed")
    await client.close()
  }, 60_000)

  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["end of stdin", 0]] as const) {
    it(`ends the process group of the server after ${signal}, and exits with ${code}`, async () => {
      // The server starts a process of its own, which ignores the end of its stdin.
      await project.write(
        "server.mjs",
        `import { spawn } from "node:child_process"
         import { writeFileSync } from "node:fs"
         const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" })
         writeFileSync("pids", process.pid + " " + child.pid)
         process.stdin.resume()
         setInterval(() => {}, 1000)`
      )
      const running = skein(project, ["dev", "node server.mjs"])
      const pids = async () => (await readFile(join(project.folder, "pids"), "utf8").catch(() => "")).split(" ")
      await until(async () => (await pids()).length === 2)
      if (signal === "end of stdin") running.child.stdin!.end()
      else running.child.kill(signal)
      assert.strictEqual(await running.ended, code)
      for (const pid of await pids()) await until(() => !isAlive(Number(pid)))
    }, 60_000)
  }
})

describe("skein dev · HTTP", () => {
  it("keeps the session of an official client while the server is edited", async () => {
    const running = skein(project, ["dev", "--http", "--port", "0", "server.ts"])
    await running.until("Listening on")
    const url = new URL(/http:\/\/\S+\/mcp/.exec(running.err())![0])
    const transport = new StreamableHTTPClientTransport(url)
    const { call, client, counts } = await connect(transport as Transport)
    const session = transport.sessionId
    assert.isString(session)
    assert.strictEqual(await call("greet"), "one")
    await project.write("server.ts", source("two"))
    await until(() => counts.changes > 0)
    assert.strictEqual(await call("greet"), "two")
    assert.strictEqual(transport.sessionId, session)
    // Each session has a server of its own.
    const other = await connect(new StreamableHTTPClientTransport(url) as Transport)
    const [one, two] = [await call("pid"), await other.call("pid")]
    assert.notStrictEqual(one, two)
    await transport.terminateSession()
    await until(() => !isAlive(Number(one)))
    await client.close()
    await other.client.close()
    const foreign = await fetch(url, { method: "POST", headers: { origin: "https://evil.example" } })
    assert.strictEqual(foreign.status, 403)
    running.child.kill("SIGTERM")
    assert.strictEqual(await running.ended, 143)
    await until(() => !isAlive(Number(two)))
  }, 90_000)

  it("responds 413 to a body beyond --max-body-bytes, and exits with 3 if the port is taken", async () => {
    const running = skein(project, ["dev", "--http", "--port", "0", "--max-body-bytes", "10", "server.ts"])
    await running.until("Listening on")
    const url = new URL(/http:\/\/\S+\/mcp/.exec(running.err())![0])
    const headers = { "content-type": "application/json" }
    const refused = await fetch(url, { method: "POST", headers, body: JSON.stringify("more than 10 bytes") })
    assert.strictEqual(refused.status, 413)
    const { port } = url
    const second = skein(project, ["dev", "--http", "--port", port, "server.ts"])
    assert.strictEqual(await second.ended, 3)
    assert.match(
      second.err(),
      /Cannot listen on 127\.0\.0\.1:\d+: the port is taken \(EADDRINUSE\): stop the other program, or set another port \(--port\)/
    )
    running.child.kill("SIGTERM")
    await running.ended
  }, 60_000)
})

describe("skein dev · 2026-07-28", () => {
  const modern = async (transport: Sdk.Transport) => {
    const client = new Sdk.Client(
      { name: "host", version: "1.0.0" },
      { versionNegotiation: { mode: { pin: "2026-07-28" } } }
    )
    const counts = { changes: 0, updates: 0 }
    client.setNotificationHandler("notifications/tools/list_changed", () => void counts.changes++)
    client.setNotificationHandler("notifications/resources/updated", () => void counts.updates++)
    await client.connect(transport)
    await client.listen({ toolsListChanged: true, resourceSubscriptions: ["tea://menu"] })
    const call = async (name: string): Promise<string> => {
      const { content } = await client.callTool({ name, arguments: {} })
      return (content as ReadonlyArray<{ readonly text: string }>)[0]!.text
    }
    assert.strictEqual(await call("greet"), "one")
    await project.write("server.ts", source("two"))
    await until(() => counts.changes > 0)
    assert.strictEqual(await call("greet"), "two")
    // The stream is open at the new server.
    await call("touch")
    await until(() => counts.updates > 0)
    await client.close()
  }

  it("2026-07-28 · keeps the streams of subscriptions/listen over stdio", async () => {
    const args = [...program, "dev", "server.ts"]
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio")
    await modern(new StdioClientTransport({ command: process.execPath, args, cwd: project.folder, stderr: "ignore" }))
  }, 60_000)

  it("2026-07-28 · keeps the streams of subscriptions/listen over HTTP", async () => {
    const running = skein(project, ["dev", "--http", "--port", "0", "server.ts"])
    await running.until("Listening on")
    await modern(new Sdk.StreamableHTTPClientTransport(new URL(/http:\/\/\S+\/mcp/.exec(running.err())![0])))
    running.child.kill("SIGTERM")
    await running.ended
  }, 60_000)
})

/** A server on stdio that takes five seconds to end after its stdin was closed, and records it. */
const slow = `
import { appendFileSync } from "node:fs"
import { createInterface } from "node:readline"
const result = {
  protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "slow", version: "1.0.0" }
}
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line)
  if (method === "initialize") console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
}).on("close", () => {
  appendFileSync("ends.txt", "begun ")
  setTimeout(() => {
    appendFileSync("ends.txt", "ended ")
    process.exit()
  }, 5_000)
})
`

describe("skein dev --close-timeout", () => {
  it("is the time that a server has to end, before it gets SIGTERM", async () => {
    await project.write("slow.mjs", slow)
    for (const [options, ends] of [[[], "begun "], [["--close-timeout", "60"], "begun ended "]] as const) {
      await project.write("ends.txt", "")
      const { err, transport } = stdio(...options, "--watch", "slow.mjs", process.execPath, "slow.mjs")
      const { client } = await connect(transport)
      await project.write("slow.mjs", `${slow}\n`)
      await until(() => err().includes("Restarting: slow.mjs changed"))
      assert.strictEqual(await readFile(join(project.folder, "ends.txt"), "utf8"), ends)
      await client.close()
    }
  }, 60_000)
})

describe("skein dev --http · options of NodeHttp in the module", () => {
  /** A module with options of its own, which does this with them. */
  const withOptions = (more: string) => `
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Layer from "effect/Layer"
const seen = Tool.async(Tool.make("seen"), async (_, { header, principal }) => \`\${header("x-tea")} \${principal?.id}\`)
const Server = McpServer.layer({ name: "optional", version: "1.0.0" }, seen)
const options = { port: 0, path: "/tea", stateless: true, principal: () => ({ id: "ada" }) }
${more}`

  const serve = async (more: string) => {
    await project.write("server.ts", withOptions(more))
    const running = skein(project, ["dev", "--http", "--port", "0", "--start-timeout", "15", "server.ts"])
    await running.until("Listening on")
    const url = /http:\/\/\S+\/mcp/.exec(running.err())![0]
    const connected = await connect(
      new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { "x-tea": "sencha" } } })
    )
    return {
      ...connected,
      err: running.err,
      close: async () => {
        await connected.client.close()
        running.child.kill("SIGTERM")
        await running.ended
      }
    }
  }

  it("are not used for a server that the module exports", async () => {
    const { call, close } = await serve(
      "export default Server\nif (import.meta.main) NodeHttp.runMain(Server, options)"
    )
    assert.strictEqual(await call("seen"), "undefined undefined")
    await close()
  }, 60_000)

  it("are rejected if the module exports the layer that listens", async () => {
    const { client, close } = await serve("export default NodeHttp.layer(options).pipe(Layer.provide(Server))")
    assert.match(client.getInstructions() ?? "", /is a layer without a server: export the layer of McpServer\.layer/)
    await close()
  }, 60_000)

  it("are used beside the bridge by a program that listens, which does not answer the handshake", async () => {
    const { client, close, err } = await serve("NodeHttp.runMain(Server, options)")
    assert.match(
      client.getInstructions() ?? "",
      /did not answer the handshake within 15s \(--start-timeout\): it must serve stdio/
    )
    assert.match(err(), /Listening on http:\/\/127\.0\.0\.1:\d+\/tea/)
    await close()
  }, 60_000)
})

describe("skein dev --inspector", () => {
  it("starts the inspector with this command, or with the URL over HTTP", async () => {
    const bin = join(project.folder, "bin")
    await mkdir(bin)
    await writeFile(join(bin, "npx"), "#!/bin/sh\nfor word in \"$@\"; do echo \"word: $word\"; done\n")
    await chmod(join(bin, "npx"), 0o755)
    const env = { PATH: [bin, process.env["PATH"]].join(delimiter) }
    const onStdio = skein(project, ["dev", "--inspector", "--inspector-version=9.9.9", "server.ts"], env)
    assert.strictEqual(await onStdio.ended, 0)
    const words = onStdio.out().trim().split("\n").map((line) => line.slice("word: ".length))
    assert.deepStrictEqual(words.slice(0, 2), ["--yes", "@modelcontextprotocol/inspector@9.9.9"])
    assert.deepStrictEqual(words.slice(-3), [program[1], "dev", "server.ts"])
    const onHttp = skein(project, ["dev", "--inspector", "--http", "--port", "0", "server.ts"], env)
    assert.strictEqual(await onHttp.ended, 0)
    assert.match(
      onHttp.out(),
      /word: --transport\nword: http\nword: --server-url\nword: http:\/\/127\.0\.0\.1:\d+\/mcp\n/
    )
  }, 60_000)
})
