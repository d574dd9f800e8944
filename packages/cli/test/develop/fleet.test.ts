/** `skein inspect --fleet` as a process, in a project. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdir, rm, symlink } from "node:fs/promises"
import { join } from "node:path"
import { partsOfText } from "../../src/internal/develop/nodeFleet.ts"
import { makeProject, type Project, run } from "./project.ts"

let project: Project
let bundled: Project

const root = join(import.meta.dirname, "../../../..")

beforeAll(async () => {
  project = await makeProject({
    "shared.ts": `
      import * as McpServer from "@skein/server/McpServer"
      import * as Tool from "@skein/server/Tool"
      import * as Effect from "effect/Effect"
      export default McpServer.layer({ name: "shared", version: "1.0.0" },
        Tool.layer(Tool.make("greet"), () => Effect.succeed("hello")))`,
    "local.ts": `
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as PerSession from "@skein/server/PerSession"
import * as RateLimit from "@skein/server/RateLimit"
import * as State from "@skein/server/State"
import * as Tool from "@skein/server/Tool"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { count } from "./counter.ts"

export const cart = State.make("cart", { schema: Schema.Int, initial: 0 })
export const browser = PerSession.make("browser", { acquire: Effect.succeed(1) })
const secret = Tool.make("secret")
const unlock = Tool.layer(Tool.make("unlock"), () =>
  Effect.as(Effect.orDie(Catalog.persistent(Tool.add(secret, () => Effect.succeed("")))), String(count())))
export default McpServer.layer({ name: "local", version: "1.0.0" },
  unlock,
  Catalog.disabled(Tool.layer(Tool.make("cellar"), () => Effect.succeed(""))),
  RateLimit.layer({ limit: 1, window: "1 minute" }),
  Tasks.layer()
).pipe(Layer.provide(MemoryTasks.layer()))`,
    "counter.ts": `let calls = 0
export const count = () => ++calls`,
    "broken.ts": `
      import * as Effect from "effect/Effect"
      import * as Layer from "effect/Layer"
      export default Layer.effectDiscard(Effect.fail(new Error("the kettle is cold")))`
  })
  bundled = await makeProject({
    "server.ts": `
import { AsyncServer, rateLimit, state } from "skein"
export const cart = state("cart", { initial: 0 })
const seen = new Map()
export const server = new AsyncServer({ name: "bundled", version: "1.0.0" })
  .tool("greet", {}, () => String(seen.size))
  .use(rateLimit({ limit: 1, window: "1 minute" }))`
  })
  const modules = join(bundled.folder, "node_modules")
  await rm(modules)
  await mkdir(modules)
  await symlink(join(root, "packages/skein"), join(modules, "skein"))
})

afterAll(() => Promise.all([project.remove(), bundled.remove()]))

const keys = { SKEIN_STATE_KEYS: "0123456789abcdef0123456789abcdef" }
const inspect = (at: Project, words: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  run(at, ["inspect", "--fleet", ...words], env)
const names = (out: string) => JSON.parse(out).local.map(({ what }: { readonly what: string }) => what)

describe("skein inspect --fleet", () => {
  it("says that nothing is left, and exits with 0", async () => {
    assert.deepStrictEqual(await inspect(project, ["shared.ts"], keys), {
      code: 0,
      out: "",
      err: "Several processes can share everything that was found in the server\n"
    })
  })

  it("lists the missing key of questions, with the remedy, and exits with 1", async () => {
    assert.deepStrictEqual(await inspect(project, ["shared.ts"]), {
      code: 1,
      out: "Each process would have these parts apart:\n" +
        "- the key that encrypts the state of questions to the client\n" +
        "    set SKEIN_STATE_KEYS, or the keys of RequestState.layer\n",
      err: ""
    })
  })

  it("lists stores, values of sessions, disabled definitions, variables and changes of the catalog", async () => {
    const { code, err, out } = await inspect(project, ["--json", "local.ts"], keys)
    assert.deepStrictEqual([code, err.includes("skein:")], [1, false])
    assert.deepStrictEqual(names(out), [
      "the tasks of MemoryTasks",
      "the counts of RateLimit.layer",
      "the state in memory (\"cart\")",
      "the values of PerSession (\"browser\")",
      "the definitions that are enabled at run time (\"cellar\")",
      "the variable calls (counter.ts:1)",
      "the catalog, changed at run time by Tool.add (local.ts:19)"
    ])
  })

  it("lists the parts of a server of the package skein", async () => {
    const { code, err, out } = await inspect(bundled, ["--json", "server.ts"], keys)
    assert.deepStrictEqual([code, err], [1, ""])
    assert.deepStrictEqual(names(out), [
      "the counts of RateLimit.layer",
      "the state in memory (\"cart\")",
      "the variable seen (server.ts:4)"
    ])
  })

  it("reports a server that cannot be built, and a target that is not a module", async () => {
    assert.deepStrictEqual(await inspect(project, ["broken.ts"]), {
      code: 2,
      out: "",
      err: "skein: The server of broken.ts cannot be built: the kettle is cold\n"
    })
    const other = await inspect(project, ["http://127.0.0.1:1/mcp"])
    assert.strictEqual(other.code, 2)
    assert.match(other.err, /--fleet needs a module as the server/)
  })
})

describe("the variables of a file", () => {
  const found = (...lines: ReadonlyArray<string>) => partsOfText("a.ts", lines.join("\n")).map(({ what }) => what)

  it("are those of the module that can change", () => {
    assert.deepStrictEqual(
      found(
        "export let a = 1",
        "const b = new Map<string, () => void>()",
        "const c: Array<string> = []",
        "const d = new Map([[1, 2]])",
        "const e = { x: 1 }",
        "  let inner = 1",
        "const f = () => {}",
        "// let g = 1"
      ),
      ["the variable a (a.ts:1)", "the variable b (a.ts:2)", "the variable c (a.ts:3)"]
    )
  })

  it("are left out with a comment on the line, or above it", () => {
    assert.deepStrictEqual(found("let a = 1 // process-local: a cache", "// process-local", "let b = 1"), [])
  })
})
