/**
 * The rules of the house are configuration, and configuration can rot without a sign: each rule is shown something that breaks it.
 */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { bundle } from "./bundle.ts"
import { leftover } from "./leftover.ts"
import { complaint, maxLines } from "./tree.ts"

const root = join(import.meta.dirname, "..")
const bin = (name: string): string => join(root, "node_modules/.bin", name)

let house = ""
const put = (path: string, text: string): string => {
  const to = join(house, path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, text)
  return to
}

beforeAll(() => {
  house = mkdtempSync(join(tmpdir(), "skein-house-"))
  copyFileSync(join(root, ".oxlintrc.json"), join(house, ".oxlintrc.json"))
  copyFileSync(join(root, "tsconfig.base.json"), join(house, "tsconfig.base.json"))
  symlinkSync(join(root, "node_modules"), join(house, "node_modules"))
})
afterAll(() => rmSync(house, { recursive: true, force: true }))

/** The rules that the linter says a file breaks, in one package of an otherwise good house. */
const broken = (path: string, text: string, others: Readonly<Record<string, string>> = {}): ReadonlyArray<string> => {
  rmSync(join(house, "packages"), { recursive: true, force: true })
  for (const [other, content] of Object.entries(others)) put(other, content)
  put(path, text)
  const { stdout } = spawnSync(bin("oxlint"), ["--format", "json", path], { cwd: house, encoding: "utf8" })
  const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: ReadonlyArray<{ readonly code: string }> }
  return diagnostics.map(({ code }) => code)
}

const imports = ["eslint(no-restricted-imports)"]
const uses = (from: string): string => `export * as X from "${from}"\n`

describe("the linter's rules of the house", () => {
  it("imports point down only", () => {
    const direction = [
      ["protocol", ["runtime", "server", "client", "tasks"]],
      ["runtime", ["server", "client", "testing"]],
      ["server", ["client", "tasks", "sql", "gateway"]],
      ["client", ["server", "auth", "cli", "testing"]],
      ["testing", ["tasks", "sql", "auth", "gateway", "cli"]],
      ["tasks", ["client", "testing", "auth", "gateway", "cli"]],
      ["sql", ["protocol", "runtime", "server", "client", "tasks", "testing"]]
    ] as const
    for (const [room, above] of direction) {
      for (const other of above) {
        expect(broken(`packages/${room}/src/A.ts`, uses(`@skein/${other}/A`)), `${room} → ${other}`).toEqual(imports)
      }
    }
  })

  it("a room below may be imported, by module", () => {
    for (const room of ["server", "client"]) {
      expect(broken(`packages/${room}/src/A.ts`, uses("@skein/protocol/A") + uses("@skein/runtime/A"))).toEqual([])
    }
    expect(broken("packages/runtime/src/A.ts", uses("@skein/protocol/A"))).toEqual([])
    const below = ["protocol", "runtime", "server", "client"].map((room) => uses(`@skein/${room}/A`)).join("")
    expect(broken("packages/testing/src/A.ts", below + uses("node:fs"))).toEqual([])
    const engine = ["protocol", "runtime", "server", "sql"].map((room) => uses(`@skein/${room}/A`)).join("")
    expect(broken("packages/tasks/src/A.ts", engine)).toEqual([])
    expect(broken("packages/sql/src/A.ts", uses("node:sqlite") + uses("pg"))).toEqual([])
  })

  it("an index is never imported, nor another room by path, nor a room by its own name", () => {
    expect(broken("packages/server/src/A.ts", uses("@skein/protocol"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("./index.ts"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("../../protocol/src/A.ts"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("@skein/server/B"))).toEqual(imports)
  })

  it("the barrels of Effect are never imported, statically, by re-export or on demand", () => {
    expect(broken("packages/runtime/src/A.ts", uses("effect"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("@effect/platform-node"))).toEqual(imports)
    expect(broken("packages/client/src/A.ts", uses("effect/http"))).toEqual(imports)
    expect(broken("packages/client/src/A.ts", "export const a = () => import(\"effect\")\n")).toEqual(imports)
    expect(broken("packages/runtime/src/A.ts", uses("effect/Effect") + uses("effect/encoding/Base64"))).toEqual([])
  })

  it("Node is reached only by the modules that are named for it", () => {
    for (const room of ["protocol", "runtime", "server", "client"]) {
      expect(broken(`packages/${room}/src/A.ts`, uses("node:fs"))).toEqual(imports)
      expect(broken(`packages/${room}/src/A.ts`, "export const a = process.argv\n"))
        .toEqual(["eslint(no-restricted-globals)"])
    }
    expect(broken("packages/server/src/Stdio.ts", uses("node:fs"))).toEqual([])
    expect(broken("packages/client/src/internal/stdioChild.ts", uses("node:child_process"))).toEqual([])
    expect(broken("packages/client/src/Stdio.ts", uses("@skein/server/Stdio"))).toEqual(imports)
  })

  it("a circle of imports is found, of types too", () => {
    expect(broken("packages/client/src/A.ts", "import { b } from \"./B.ts\"\nexport const a = (): number => b()\n", {
      "packages/client/src/B.ts": "import { c } from \"./C.ts\"\nexport const b = (): number => c()\n",
      "packages/client/src/C.ts": "import { a } from \"./A.ts\"\nexport const c = (): number => a()\n"
    })).toEqual(["import(no-cycle)"])
    expect(broken("packages/client/src/A.ts", "import type { B } from \"./B.ts\"\nexport type A = B\n", {
      "packages/client/src/B.ts": "import type { A } from \"./A.ts\"\nexport type B = A | 1\n"
    })).toEqual(["import(no-cycle)"])
  })

  it("a library neither prints nor says any", () => {
    expect(broken("packages/server/src/Stdio.ts", "console.log(1)\n")).toEqual(["eslint(no-console)"])
    expect(broken("packages/server/src/A.ts", "export type A = any\n")).toEqual(["typescript(no-explicit-any)"])
  })
})

describe("the check of the tree", () => {
  it("500 lines are allowed, 501 are not, whatever ends the last one", () => {
    expect(complaint("a.md", Buffer.from("x\n".repeat(maxLines)))).toBeUndefined()
    expect(complaint("a.md", Buffer.from("x\n".repeat(maxLines) + "x"))).toContain("501 lines")
    expect(complaint("a.md", Buffer.from("x\n".repeat(maxLines + 1)))).toContain("501 lines")
  })

  it("a binary file has no lines", () => {
    expect(complaint("a.png", Buffer.from("\0" + "\n".repeat(600)))).toBeUndefined()
  })

  it("the lock file may be long, names no registry and lacks no platform", () => {
    const lock = (packages: object): string | undefined =>
      complaint("package-lock.json", Buffer.from(JSON.stringify({ packages }, null, 2)))
    const tool = { version: "1.0.0", optionalDependencies: { "tool-linux": "1.0.0" } }
    expect(complaint("package-lock.json", Buffer.from("{}" + "\n".repeat(600)))).toBeUndefined()
    expect(lock({ "node_modules/a": { resolved: "https://example.org/a.tgz" } })).toContain("names a registry")
    expect(lock({ "node_modules/tool": tool })).toBe("package-lock.json: lacks tool-linux")
    expect(lock({ "node_modules/tool": tool, "node_modules/tool-linux": { optional: true } })).toBeUndefined()
  })
})

describe("the type check", () => {
  it("fails on a floating effect and on a missing return yield*", () => {
    put(
      "check/A.ts",
      "import * as Effect from \"effect/Effect\"\n" +
        "export const a = Effect.gen(function*() {\n" +
        "  Effect.log(\"floating\")\n" +
        "  if (Date.now() > 1) yield* Effect.fail(\"never returns\")\n" +
        "  return 1\n" +
        "})\n"
    )
    put("check/tsconfig.json", "{ \"extends\": \"../tsconfig.base.json\", \"include\": [\".\"] }")
    const { status, stdout } = spawnSync(bin("tsc"), ["-p", "check", "--noEmit"], { cwd: house, encoding: "utf8" })
    expect(stdout).toContain("A.ts(3,3): error TS377001")
    expect(stdout).toContain("A.ts(4,23): error TS377006")
    expect(status).not.toBe(0)
  })
})

describe("the build", () => {
  const sources = {
    protocol: "JsonRpc",
    runtime: "Link",
    server: "Tool",
    client: "Client",
    testing: "FaultyServer",
    sql: "SqliteClient",
    tasks: "Tasks"
  }

  /** What the compiler says about a room with a module that imports this, and what it left among the sources. */
  const built = (room: keyof typeof sources, from: string) => {
    rmSync(join(house, "packages"), { recursive: true, force: true })
    for (const [each, module] of Object.entries(sources)) {
      put(`packages/${each}/tsconfig.json`, readFileSync(join(root, "packages", each, "tsconfig.json"), "utf8"))
      put(`packages/${each}/package.json`, "{ \"type\": \"module\" }")
      put(`packages/${each}/src/${module}.ts`, "export const a = 1\n")
    }
    put(`packages/${room}/src/A.ts`, `export { a } from "${from}"\n`)
    const { status, stdout } = spawnSync(bin("tsc"), ["-b", `packages/${room}`], { cwd: house, encoding: "utf8" })
    const emitted = readdirSync(join(house, "packages"), { recursive: true, encoding: "utf8" })
      .filter((path) => /\bsrc\b.*\.(js|d\.ts)$/.test(path))
    return { ok: status === 0, emitted, unlisted: /A\.ts\(1,19\): error TS6307/.test(stdout) }
  }

  it("imports point down only: what is no project reference is refused, and nothing is written beside the sources", () => {
    const refused = { ok: false, emitted: [], unlisted: true }
    expect(built("protocol", "@skein/runtime/Link")).toEqual(refused)
    expect(built("runtime", "@skein/server/Tool")).toEqual(refused)
    expect(built("server", "@skein/client/Client")).toEqual(refused)
    expect(built("client", "@skein/server/Tool")).toEqual(refused)
    expect(built("client", "@skein/testing/FaultyServer")).toEqual(refused)
    expect(built("tasks", "@skein/client/Client")).toEqual(refused)
    expect(built("server", "@skein/tasks/Tasks")).toEqual(refused)
    const fine = { ok: true, emitted: [], unlisted: false }
    expect(built("client", "@skein/protocol/JsonRpc")).toEqual(fine)
    expect(built("server", "@skein/runtime/Link")).toEqual(fine)
    expect(built("tasks", "@skein/server/Tool")).toEqual(fine)
  })
})

describe("what is left of an unused module", () => {
  const left = (code: string): Promise<string> => leftover(put("left/A.js", code))

  it("nothing, where it only makes values", async () => {
    expect(
      await left("import * as X from \"effect/X\"\nexport const a = /*#__PURE__*/X.f()\nexport class B { b = a }\n")
    )
      .toBe("")
    expect(await left("export const maxBytes = 4 * 1024 * 1024\n")).toBe("")
  })

  it("a bare call, an unmarked one, and a static block", async () => {
    expect(await left("globalThis.register(1)\n")).toContain("register")
    expect(await left("export const a = globalThis.f()\n")).toContain("globalThis.f()")
    expect(await left("export class B { static { this.b = 1 } }\n")).toContain("static")
  })
})

describe("the packages", () => {
  for (const room of ["protocol", "runtime", "server", "client", "testing", "sql", "tasks"]) {
    it(`${room}: the index names each public module once, in order, and each exported name has a comment`, () => {
      const folder = join(root, "packages", room, "src")
      const modules = readdirSync(folder).filter((file) => file.endsWith(".ts") && file !== "index.ts").sort()
      const lines = modules.map((file) => `export * as ${basename(file, ".ts")} from "./${file}"\n`)
      expect(readFileSync(join(folder, "index.ts"), "utf8")).toBe(lines.join(""))
      expect(
        modules.flatMap((file) => bare(readFileSync(join(folder, file), "utf8")).map((name) => `${file}: ${name}`))
      )
        .toEqual([])
    })
  }
})

/**
 * The exported names of a module that have no comment. A schema's type shares the comment of its schema, and a row of the table of
 * methods says its name itself.
 */
const bare = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n")
  const documented = new Set<string>()
  return lines.flatMap((line, index) => {
    const name = /^export (?:const|class|interface|type|function) (\w+)/.exec(line)?.[1]
    if (name === undefined || documented.has(name) || / = (?:make|notify)\((?:"|$)/.test(line)) return []
    if (!lines[index - 1]?.endsWith("*/")) return [name]
    documented.add(name)
    return []
  })
}

describe("the bundle", () => {
  const source = {
    "packages/protocol/src/Model.ts": `
const make = (value: object) => ({ ...value, get name() { return "wanted" } })
const fields = make({ a: 1 })
export class Used { static readonly of = make({ ...fields }) }
export class Spread extends (make({ not: "wanted", ...fields }) as unknown as typeof Used) { static b = fields.name }
export const read = make({ not: fields.name })
export const called = make({ not: "wanted" })
const bound = 64 * 1024
export class Bounded { not = bound }
export const text = \`not wanted \${fields.name}\`
`,
    "app.ts": "import { Used } from \"./packages/protocol/src/Model.ts\"\nconsole.log(Used.of.name)\n"
  }

  it("runs as one file, and drops what is made at the top of a module but not used", async () => {
    for (const [path, text] of Object.entries(source)) put(path, text)
    const [entry, outfile, plain] = ["app.ts", "app.mjs", "plain.mjs"].map((path) => join(house, path)) as [
      string,
      string,
      string
    ]
    const annotated = await bundle({ entry, outfile })
    expect(execFileSync(process.execPath, [outfile], { encoding: "utf8" })).toBe("wanted\n")
    expect(readFileSync(outfile, "utf8")).not.toMatch(/\bnot\b|Spread|64 \*|65536/)
    expect(annotated).toBeLessThan(await bundle({ entry, outfile: plain, annotate: false }))
    expect(readFileSync(plain, "utf8")).toMatch(/\bnot\b/)
  })

  it("gives a CommonJS dependency its require", async () => {
    put("cjs/old.cjs", "module.exports = () => require(\"node:path\").sep\n")
    const entry = put("cjs/app.ts", "import sep from \"./old.cjs\"\nconsole.log(sep())\n")
    const outfile = join(house, "cjs/out.mjs")
    await bundle({ entry, outfile })
    expect(execFileSync(process.execPath, [outfile], { encoding: "utf8" })).toBe("/\n")
  })
})
