/** `skein run` as a process, in projects of their own. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { rm } from "node:fs/promises"
import { asWord, greeting, makeProject, program, type Project, run, skein } from "./project.ts"

let project: Project

beforeAll(async () => {
  project = await makeProject({
    "server.ts": greeting("hello", "export const helper = 1\nconsole.log(\"loading\")"),
    "async.js": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      export default new AsyncServer({ name: "greeter", version: "1.0.0" }).tool("greet", {}, () => process.env.GREETING)`,
    ".env": "GREETING=good morning\n",
    // Node cannot remove an enum and a parameter property, nor find a module without an extension.
    "transformed.ts": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      import { Kind, Shape } from "./kind"
      class Point { constructor(readonly shape: Shape) {} }
      const { shape } = new Point({ kind: Kind.Second })
      export default new AsyncServer({ name: "greeter", version: "1.0.0" }).tool("greet", {}, () => "kind " + shape.kind)`,
    "kind.ts": "export enum Kind { First, Second }\nexport interface Shape { kind: Kind }",
    "idle.ts": "const server = 1",
    "several.ts": greeting("one", "export const Other = Server"),
    "definitions.ts": `
      import * as Tool from "@skein/server/Tool"
      import * as Effect from "effect/Effect"
      export default Tool.layer(Tool.make("greet"), () => Effect.succeed("hello"))`,
    "services.ts": `
      import * as McpServer from "@skein/server/McpServer"
      import * as Context from "effect/Context"
      import * as Effect from "effect/Effect"
      import * as Layer from "effect/Layer"
      class Database extends Context.Service()("app/Database") {}
      export default Layer.merge(McpServer.layer({ name: "s", version: "1" }), Layer.effectDiscard(Effect.asVoid(Database)))`,
    "other.ts": "import * as Layer from \"effect/Layer\"\nexport default Layer.empty",
    "thrown.ts": "throw new Error(\"no database\")",
    "function.ts": "export default () => 1",
    "notes.md": "",
    "mistake.ts": "export default {"
  })
})

afterAll(() => project.remove())

/** Calls `greet` of a server that `skein run` serves on stdio. */
const greet = (...args: ReadonlyArray<string>) => {
  const server = asWord([process.execPath, ...program, "run", ...args])
  return run(project, ["call", server, "greet", "{}"])
}

describe("skein run · stdio", () => {
  it("serves the only server among the exports of a module, and keeps other output from stdout", async () => {
    assert.deepStrictEqual(await greet("server.ts"), { code: 0, out: "hello\n", err: "" })
    const { code, err, out } = await run(project, ["run", "server.ts"])
    assert.deepStrictEqual([code, out, err], [0, "", "loading\n"])
  })

  it("serves an AsyncServer with the variables of --dotenv", async () => {
    assert.deepStrictEqual(await greet("--dotenv", ".env", "async.js"), { code: 0, out: "good morning\n", err: "" })
  })

  it("serves TypeScript that Node cannot run by removing the types", async () => {
    assert.deepStrictEqual(await greet("transformed.ts"), { code: 0, out: "kind 1\n", err: "" })
  })

  it("serves the export of --export", async () => {
    assert.strictEqual((await greet("--export", "Other", "several.ts")).out, "one\n")
  })
})

describe("skein run · HTTP", () => {
  it("listens on the port of the options, and exits with 143 after SIGTERM", async () => {
    const running = skein(project, ["run", "--http", "--port", "0", "server.ts"], { SKEIN_PATH: "/greeter" })
    await running.until(/Listening on http:\S+/)
    const url = /http:\/\/127\.0\.0\.1:\d+\/greeter/.exec(running.err())![0]
    assert.strictEqual((await run(project, ["call", url, "greet", "{}"])).out, "hello\n")
    running.child.kill("SIGTERM")
    assert.strictEqual(await running.ended, 143)
  })

  it("serves with the workers of the option, each of which loads the module", async () => {
    const running = skein(project, ["run", "--http", "--port", "0", "--workers", "2", "server.ts"])
    await running.until(/Listening on http:\S+ \(workers: 2\)/)
    const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(running.err())![0]
    assert.strictEqual((await run(project, ["call", url, "greet", "{}"])).out, "hello\n")
    running.child.kill("SIGTERM")
    assert.strictEqual(await running.ended, 143)
    for (
      const [args, message] of [
        [["run", "--workers", "2", "server.ts"], "--workers needs --http"],
        [["run", "--http", "--workers", "0", "server.ts"], "--workers must be auto, or a whole number from 1 to 9999"]
      ] as const
    ) {
      const { code, err } = await run(project, args)
      assert.strictEqual(code, 2)
      assert.include(err, message)
    }
  })

  it("reports a variable that is not valid as the server does", async () => {
    const { code, err } = await run(project, ["run", "--http", "server.ts"], { SKEIN_PORT: "tea" })
    assert.deepStrictEqual([code, err], [1, "loading\nSKEIN_PORT is \"tea\": expected a port, from 0 to 65535\n"])
  })
})

describe("skein run · a module that cannot be served", () => {
  const cases: ReadonlyArray<readonly [title: string, args: ReadonlyArray<string>, report: RegExp]> = [
    ["does not exist", ["none.ts"], /^skein: The module none\.ts does not exist\n$/],
    ["is not a module", ["notes.md"], /notes\.md is not JavaScript or TypeScript: its extension must be one of \.ts/],
    ["throws", ["thrown.ts"], /thrown\.ts cannot be loaded: Error: no database\n +at file:\S+thrown\.ts:1:7\n$/],
    ["is not valid", ["mistake.ts"], /mistake\.ts cannot be loaded: /],
    ["has no server", ["kind.ts"], /The module kind\.ts exports no server.*: its exports are Kind\n$/],
    [
      "ends without a server",
      ["idle.ts"],
      /The module idle\.ts exports no server, and has started none: export a layer/
    ],
    ["has several servers", ["several.ts"], /exports several layers, select one with --export: Other, Server\n$/],
    ["does not have the export", ["--export", "Tea", "several.ts"], /has no export Tea: its exports are Other, Server/],
    [
      "exports a number",
      ["--export", "helper", "server.ts"],
      /The export helper of server\.ts is not a server.* a number/
    ],
    ["exports a function", ["function.ts"], /is not a server.* a function: export the layer that it returns/],
    ["exports definitions", ["definitions.ts"], /is a layer of definitions, not a server: pass it to McpServer\.layer/],
    ["exports another layer", ["other.ts"], /is a layer without a server: export the layer of McpServer\.layer/],
    ["needs a service", ["services.ts"], /services\.ts needs the service app\/Database: provide its layer/],
    ["has no file of --dotenv", ["--dotenv", "none", "server.ts"], /The file of --dotenv cannot be read: .*none/]
  ]
  for (const [title, args, report] of cases) {
    it(`exits with 2 for a module that ${title}`, async () => {
      const { code, err, out } = await run(project, ["run", ...args])
      assert.match(err, report)
      assert.deepStrictEqual([code, out], [2, ""])
    })
  }

  it("exits with 2 in a project without @skein/server", async () => {
    const bare = await makeProject({ "server.mjs": "export default 1" })
    try {
      await rm(`${bare.folder}/node_modules`)
      const { code, err } = await run(bare, ["run", "server.mjs"])
      assert.match(
        err,
        /@skein\/server\/Stdio is not installed in the project of \S+: npm install skein, or npm install @skein\/server effect\n$/
      )
      assert.strictEqual(code, 2)
    } finally {
      await bare.remove()
    }
  })
})
