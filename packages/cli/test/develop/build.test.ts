/** `skein build` as a process: what the file contains, and that Node runs it in a folder without `node_modules`. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { cp, mkdir, readFile, rm, symlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { buildServer } from "../../src/internal/develop/nodeBuild.ts"
import type { BuildLine } from "../../src/internal/develop/nodeBuild.ts"
import { CommandFailed } from "../../src/internal/base/process.ts"
import { asWord, greeting, makeProject, type Project, run, start } from "./project.ts"

let project: Project
let shipped: Project

beforeAll(async () => {
  project = await makeProject({
    "server.ts": greeting("hello"),
    "main.ts":
      "import { runMain } from \"@skein/server/Stdio\"\nimport { Server } from \"./server.ts\"\nrunMain(Server)",
    "async.ts": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      enum Kind { First, Second }
      export const helper = 1
      export const Async = new AsyncServer({ name: "greeter", version: "1.0.0" }).tool("greet", {}, () => "kind " + Kind.Second)`,
    "tasks.ts": `
      import * as McpServer from "@skein/server/McpServer"
      import * as SqliteTasks from "@skein/tasks/SqliteTasks"
      import * as Tasks from "@skein/tasks/Tasks"
      import * as Layer from "effect/Layer"
      export default Layer.provide(
        McpServer.layer({ name: "tasks", version: "1.0.0" }, Tasks.layer()),
        SqliteTasks.layer({ filename: "tasks.db" })
      )`,
    "routes.ts": `
      import * as NodeRoutes from "@skein/server/NodeRoutes"
      import * as NodeHttp from "@skein/server/NodeHttp"
      import * as Effect from "effect/Effect"
      import * as HttpRouter from "effect/http/HttpRouter"
      import * as HttpServerResponse from "effect/http/HttpServerResponse"
      import { Server } from "./server.ts"
      const Tea = HttpRouter.add("GET", "/tea", Effect.succeed(HttpServerResponse.text("sencha")))
      NodeHttp.runMain(Server, { routes: NodeRoutes.make(Tea) })`,
    "thrown.ts": `
      import { AsyncServer } from "@skein/server/AsyncServer"

      const thrown = (): string => { throw new Error("no tea */ left") }
      export default new AsyncServer({ name: "greeter", version: "1.0.0" }).tool("greet", {}, () => thrown())`,
    "native.ts": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      import addon from "native-addon"
      import helper from "plain-helper"
      export default new AsyncServer({ name: "greeter", version: "1.0.0" }).tool("greet", {}, () => addon + helper)`,
    "waiting.ts": "export default await Promise.resolve(1)",
    "mistake.ts": "export default {",
    "lost.ts": "import \"no-such-package\"\nexport default 1"
  })
  shipped = await makeProject({})
  await rm(join(shipped.folder, "node_modules"))
  // Packages of their own, beside those of the repository.
  const modules = join(project.folder, "native/node_modules")
  await mkdir(join(modules, "native-addon"), { recursive: true })
  await mkdir(join(modules, "plain-helper"), { recursive: true })
  await cp(join(project.folder, "native.ts"), join(project.folder, "native/server.ts"))
  await project.write(
    "native/node_modules/native-addon/package.json",
    JSON.stringify({ gypfile: true, main: "main.js" })
  )
  await project.write("native/node_modules/native-addon/main.js", "module.exports = \"native\"")
  await project.write("native/node_modules/plain-helper/package.json", JSON.stringify({ main: "main.js" }))
  await project.write(
    "native/node_modules/plain-helper/main.js",
    "try { require(\"optional-part\") } catch {}\nmodule.exports = \" and plain\""
  )
})

afterAll(async () => {
  await project.remove()
  await shipped.remove()
})

/** Builds a module into the other folder, and returns the path of the file there. */
const build = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { code, err, out } = await run(project, ["build", "--json", ...args])
  assert.deepStrictEqual([code, err], [0, ""], err)
  const { file } = JSON.parse(out) as { readonly file: string }
  const to = join(shipped.folder, file)
  await cp(join(project.folder, dirname(file)), dirname(to), { recursive: true })
  return to
}

const greet = (file: string, ...options: ReadonlyArray<string>) =>
  run(shipped, ["call", ...options, asWord([process.execPath, file]), "greet", "{}"])

/** How a build in this process fails. */
const failureOf = async ({ module = "", ...line }: Partial<BuildLine>): Promise<CommandFailed> => {
  const defaults = { exportName: undefined, http: false, minify: true, sourcemap: false, external: [], json: false }
  const out = join(project.folder, "dist/failed.cjs")
  const error: unknown = await buildServer({ ...defaults, out, ...line, module: join(project.folder, module) })
    .then(() => assert.fail("the module was bundled"), (error: unknown) => error)
  return error instanceof CommandFailed ? error : assert.fail(String(error))
}

describe("skein build", () => {
  it("writes one file that runs without node_modules", async () => {
    const { code, out } = await run(project, ["build", "server.ts"])
    assert.match(out, /^dist\/server\.cjs {2}\d+\.\d KiB\n$/)
    assert.strictEqual(code, 0)
    const file = await build("server.ts")
    assert.match(
      await readFile(file, "utf8"),
      /^#!\/usr\/bin\/env node\n"use strict";\{[^\n]*enableCompileCache[^\n]*\/\*\n/
    )
    assert.deepStrictEqual(await greet(file), { code: 0, out: "hello\n", err: "" })
  })

  it("writes a program that a shell starts, as npx does", async () => {
    const { folder } = shipped
    await symlink(await build("server.ts"), join(folder, "greeter"))
    const { code, out } = await run(shipped, ["call", join(folder, "greeter"), "greet", "{}"])
    assert.deepStrictEqual([code, out], [0, "hello\n"])
  })

  it("bundles an AsyncServer, and a program that starts its server", async () => {
    assert.strictEqual((await greet(await build("--export", "Async", "async.ts"))).out, "kind 1\n")
    assert.strictEqual((await greet(await build("main.ts"))).out, "hello\n")
  })

  it("serves over HTTP with --http, and writes where --out says", async () => {
    const file = await build("--http", "--out", "out/greeter.cjs", "server.ts")
    assert.match(file, /out\/greeter\.cjs$/)
    const server = start(shipped, [process.execPath, file], { SKEIN_PORT: "0" })
    await server.until("Listening on")
    const url = /http:\/\/[\d.:]+\/mcp/.exec(server.err())![0]
    assert.strictEqual((await run(shipped, ["call", url, "greet", "{}"])).out, "hello\n")
    server.child.kill("SIGTERM")
    assert.strictEqual(await server.ended, 143)
  })

  it("bundles the CommonJS dependencies of @effect/platform-node", async () => {
    const server = start(shipped, [process.execPath, await build("routes.ts")], { SKEIN_PORT: "0" })
    await server.until("Listening on")
    const { origin } = new URL(/http:\/\/[\d.:]+\/mcp/.exec(server.err())![0])
    assert.strictEqual(await (await fetch(`${origin}/tea`)).text(), "sencha")
    server.child.kill("SIGTERM")
    await server.ended
  })

  it("needs no PostgreSQL client for tasks in SQLite", async () => {
    const file = await build("tasks.ts")
    assert.notMatch(await readFile(file, "utf8"), /require\(["'`]pg["'`]\)|pg-protocol/)
    const { code, out } = await run(shipped, ["inspect", "--info", asWord([process.execPath, file])])
    assert.match(out, /Extensions +io\.modelcontextprotocol\/tasks/)
    assert.strictEqual(code, 0)
  })

  it("maps stack traces to the sources, in a file whose comments end early otherwise", async () => {
    const file = await build("--sourcemap", "--no-minify", "thrown.ts")
    const { code, err } = await greet(file, "--verbose")
    assert.match(err, /no tea \*\/ left\n +at thrown \(\S+thrown\.ts:4:\d+\)/)
    assert.strictEqual(code, 1)
  })

  it("keeps packages with native code outside of the file, and reports them", async () => {
    const { code, err, out } = await run(project, ["build", "--out", "native/dist/server.cjs", "native/server.ts"])
    assert.strictEqual(
      err,
      "native-addon has native code, so it is not in the file: install it beside the file\n" +
        "optional-part is not installed, and plain-helper imports it: the import fails when it is used\n"
    )
    assert.match(out, /^native\/dist\/server\.cjs/)
    assert.strictEqual(code, 0)
    assert.strictEqual((await greet(join(project.folder, "native/dist/server.cjs"))).out, "native and plain\n")
  })

  const cases: ReadonlyArray<readonly [title: string, line: Partial<BuildLine>, report: RegExp]> = [
    ["does not exist", { module: "none.ts" }, /^The module \S+none\.ts does not exist$/],
    [
      "has several exports",
      { module: "async.ts" },
      /Select the server of \S+ with --export: its exports are Async, helper/
    ],
    ["does not have the export", { module: "async.ts", exportName: "Tea" }, /has no export Tea: its exports are/],
    ["starts its server itself", { module: "main.ts", http: true }, /has no exports, so it starts the server itself/],
    [
      "awaits at its top level",
      { module: "waiting.ts" },
      /cannot be bundled: a module awaits at its top level, [^]*waiting\.ts/
    ],
    ["is not valid", { module: "mistake.ts" }, /cannot be bundled: [^]*mistake\.ts/],
    ["imports a package that is not installed", { module: "lost.ts" }, /cannot be bundled: [^]*no-such-package/],
    [
      "is to be another kind of file",
      { module: "server.ts", out: "server.mjs" },
      /The file of --out must end with \.cjs/
    ]
  ]
  for (const [title, line, report] of cases) {
    it(`exits with 2 for a module that ${title}`, async () => {
      const { exitCode, report: text = "" } = await failureOf(line)
      assert.match(text, report)
      assert.strictEqual(exitCode, 2)
    })
  }

  it("exits with 3 if the file cannot be written", async () => {
    const out = join(project.folder, "server.ts/dist.cjs")
    const { exitCode, report = "" } = await failureOf({ module: "server.ts", out })
    assert.match(report, /The file \S+server\.ts\/dist\.cjs cannot be written: /)
    assert.strictEqual(exitCode, 3)
  })
})
