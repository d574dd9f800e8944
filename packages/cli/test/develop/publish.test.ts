/** `skein publish --dry-run` and `skein build --mcpb` as processes, in a project with a server that has a Config. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { join } from "node:path"
import { asWord, makeProject, type Project, run, start } from "./project.ts"

let project: Project

const manifest = {
  name: "@ada/tea-house",
  version: "1.2.0",
  type: "module",
  mcpName: "io.github.ada/tea-house",
  author: "Ada",
  repository: "ada/tea"
}

beforeAll(async () => {
  project = await makeProject({
    "package.json": JSON.stringify(manifest),
    "server.ts": `
      import * as McpServer from "@skein/server/McpServer"
      import * as Tool from "@skein/server/Tool"
      import * as Config from "effect/Config"
      import * as Effect from "effect/Effect"
      import * as Layer from "effect/Layer"
      console.log("loading")
      const Brew = Layer.unwrap(Effect.gen(function*() {
        const key = yield* Config.String("TEA_API_KEY")
        const pot = yield* Config.String("TEA_POT").pipe(Config.withDefault("clay"))
        const port = yield* Config.Int("PORT").pipe(Config.nested("TEA"), Config.withDefault(1))
        return Tool.layer(Tool.make("brew", { description: "Brews a pot." }), () =>
          Effect.succeed([key, pot, port, process.env["TEA_SHELF"]].join(" ")))
      }))
      export default McpServer.layer({ name: "tea-house", version: "1.2.0", description: "Brews tea." }, Brew)`,
    "plain.ts": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      export default new AsyncServer({ name: "plain", version: "1.2.0" }).tool("greet", {}, () => "hello")`,
    "async.ts": `
      import { AsyncServer } from "@skein/server/AsyncServer"
      import { env } from "node:process"
      const { TEA_TOKEN, NODE_ENV } = process.env
      const level = env["TEA_LEVEL"] ?? ("TEA_QUIET" in process.env ? "quiet" : "all")
      if (TEA_TOKEN === undefined) throw new Error("no token")
      import { late } from "./late.ts"
      export default new AsyncServer({ name: "async", version: "1.2.0" })
        .tool("greet", {}, () => [level, TEA_TOKEN, NODE_ENV, late()].join(" "))`,
    "late.ts": `
      import { env } from "node:process"
      // process.env.TEA_COMMENT
      export const late = (): string => {
        const { TEA_CUP: cup = "glass", "TEA_SPOON": spoon } = process.env
        const other = { env: { TEA_OTHER: "1" } }
        process.env.TEA_WRITTEN = "1"
        return [cup, spoon, env.TEA_LATE, process.env?.["TEA_SECRET"], other.env.TEA_OTHER, process.env.PATH].join(" ")
      }`,
    "broken.ts": `
      import * as Effect from "effect/Effect"
      import * as Layer from "effect/Layer"
      export default Layer.effectDiscard(Effect.fail(new Error("the kettle is cold")))`,
    "program.ts": "process.exitCode = 0"
  })
})

afterAll(() => project.remove())

const publish = (...args: ReadonlyArray<string>) => run(project, ["publish", "--dry-run", ...args])

describe("skein publish --dry-run", () => {
  it("prints the entry with the variables that the Config of the server reads, and no values", async () => {
    const { code, err, out } = await publish("--env", "TEA_API_KEY=hidden", "--env", "TEA_SHELF", "server.ts")
    assert.deepStrictEqual([code, err], [0, "loading\n"])
    assert.deepStrictEqual(JSON.parse(out), {
      $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
      name: "io.github.ada/tea-house",
      description: "Brews tea.",
      version: "1.2.0",
      repository: { url: "https://github.com/ada/tea", source: "github" },
      packages: [{
        registryType: "npm",
        identifier: "@ada/tea-house",
        version: "1.2.0",
        transport: { type: "stdio" },
        environmentVariables: [
          { name: "TEA_API_KEY", isRequired: true, isSecret: true },
          { name: "TEA_PORT" },
          { name: "TEA_POT" },
          { name: "TEA_SHELF", isRequired: true }
        ]
      }]
    })
  })

  it("names a variable that the server cannot be built without, and other reasons", async () => {
    const missing = await publish("server.ts")
    assert.deepStrictEqual([missing.code, missing.out], [2, ""])
    assert.match(missing.err, /cannot be built without the variable TEA_API_KEY: [^]*--env TEA_API_KEY=<value>/)
    const broken = await publish("broken.ts")
    assert.deepStrictEqual(broken.code, 2)
    assert.match(broken.err, /The server of broken\.ts cannot be built: the kettle is cold/)
    const program = await publish("program.ts")
    assert.match(program.err, /The module program\.ts exports no server/)
    const named = await publish("--name", "tea", "plain.ts")
    assert.match(
      named.err,
      /needs a name with a namespace that you own, and not tea: npm pkg set mcpName=io\.github\.ada\/tea/
    )
    const long = await publish("--description", "x".repeat(101), "plain.ts")
    assert.deepStrictEqual(long.code, 2)
    assert.match(long.err, /The registry would refuse the entry: [^]*description/)
  })

  it("finds the variables that the files of a server read from process.env, while it is built or in a handler", async () => {
    const { code, err, out } = await publish("--env", "TEA_TOKEN=any", "async.ts")
    assert.deepStrictEqual([code, err], [0, ""])
    assert.deepStrictEqual(JSON.parse(out).packages[0].environmentVariables, [
      { name: "TEA_CUP" },
      { name: "TEA_LATE" },
      { name: "TEA_LEVEL" },
      { name: "TEA_QUIET" },
      { name: "TEA_SECRET", isSecret: true },
      { name: "TEA_SPOON" },
      { name: "TEA_TOKEN", isRequired: true, isSecret: true }
    ])
    const missing = await publish("async.ts")
    assert.deepStrictEqual(missing.code, 2)
    assert.match(missing.err, /no token[^]*The server reads TEA_TOKEN, TEA_LEVEL, TEA_QUIET, without a value here/)
    assert.match(missing.err, /--env TEA_TOKEN=<value>/)
  })

  it("writes the entry to a file, with a remote server", async () => {
    const { code, err, out } = await publish("--out", "server.json", "--remote", "https://example.com/mcp", "plain.ts")
    assert.deepStrictEqual([code, err, out], [0, "", "server.json\n"])
    const { packages, remotes } = JSON.parse(await readFile(join(project.folder, "server.json"), "utf8"))
    assert.deepStrictEqual(remotes, [{ type: "streamable-http", url: "https://example.com/mcp" }])
    assert.deepStrictEqual(packages[0].environmentVariables, undefined)
  })

  it("needs --dry-run, since it sends nothing", async () => {
    const { code, err } = await run(project, ["publish", "plain.ts"])
    assert.deepStrictEqual(code, 2)
    assert.match(err, /skein publish needs --dry-run: it sends nothing/)
  })
})

/** The official tool, which npm run published installs. */
const tool = (() => {
  try {
    const from = join(import.meta.dirname, "../published/package.json")
    const file = createRequire(from).resolve("@anthropic-ai/mcpb/cli").replace(/cli\.js$/, "cli/cli.js")
    return existsSync(file) ? file : undefined
  } catch {
    return undefined
  }
})()

const absent = "not checked: npm ci --prefix packages/cli/test/published installs the official tool"

describe("skein build --mcpb", () => {
  it.skipIf(tool === undefined)(
    `makes bundles that the official tool validates and unpacks, and that run${
      tool === undefined ? ` · ${absent}` : ""
    }`,
    async () => {
      const built = await run(project, ["build", "--mcpb", "--env", "TEA_API_KEY=any", "server.ts"])
      assert.deepStrictEqual(built.code, 0, built.err)
      assert.match(built.out, /^dist\/server\.cjs {2}[\d.]+ KiB\ndist\/server\.mcpb {2}[\d.]+ KiB\n$/)
      const official = async (...args: ReadonlyArray<string>) => {
        const { child, ended, err, out } = start(project, [process.execPath, tool!, ...args])
        child.stdin!.end()
        assert.deepStrictEqual(await ended, 0, out() + err())
        return out()
      }
      await official("unpack", "dist/server.mcpb", "unpacked")
      assert.match(await official("validate", "unpacked/manifest.json"), /passes|valid/i)
      await official("pack", "unpacked", "again.mcpb")
      const { server } = JSON.parse(await readFile(join(project.folder, "unpacked/manifest.json"), "utf8"))
      const [file] = server.mcp_config.args.map((word: string) => word.replace("${__dirname}", "unpacked"))
      // A host leaves the setting that the person did not fill in empty, or as the manifest has it.
      for (const pot of ["", "${user_config.tea_pot}"]) {
        const env = ["--env", "TEA_API_KEY=sencha", "--env", `TEA_POT=${pot}`]
        const called = await run(project, ["call", ...env, asWord([process.execPath, file]), "brew", "{}"])
        assert.deepStrictEqual([called.code, called.out], [0, "sencha clay 1 \n"])
      }
    },
    120_000
  )

  it("refuses a package outside of the file, --http, and a server without an author", async () => {
    const external = await run(project, ["build", "--mcpb", "--external", "effect", "plain.ts"])
    assert.deepStrictEqual(external.code, 2)
    assert.match(external.err, /A bundle cannot be made, because these packages are not in the file: effect/)
    const http = await run(project, ["build", "--mcpb", "--http", "plain.ts"])
    assert.match(http.err, /--mcpb cannot be used with --http/)
    const env = await run(project, ["build", "--env", "A=b", "plain.ts"])
    assert.match(env.err, /--env and --dotenv need --mcpb/)
    const { author: _, ...anonymous } = manifest
    await project.write("package.json", JSON.stringify(anonymous))
    const built = await run(project, ["build", "--mcpb", "plain.ts"])
    await project.write("package.json", JSON.stringify(manifest))
    assert.deepStrictEqual(built.code, 2)
    assert.match(built.err, /A bundle needs the author of the server: npm pkg set author=/)
  })
})
