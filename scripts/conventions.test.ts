/**
 * Tests of the repository's rules: the linter's, the compiler's, and those of the build. A rule that is configuration
 * can lose its effect unnoticed, so each test breaks one on purpose.
 */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, posix } from "node:path"
import { bundle } from "./bundle.ts"
import { allowedLayers, foldersOf, type Layers, layers } from "./layers.ts"
import { leftover } from "./leftover.ts"
import { publicModules } from "./publicModules.ts"
import { largeModuleLines, maxLines, minModuleLines, problem, warning } from "./tree.ts"

const root = join(import.meta.dirname, "..")
const bin = (name: string): string => join(root, "node_modules/.bin", name)
const packages = readdirSync(join(root, "packages")).filter((name) =>
  existsSync(join(root, "packages", name, "package.json"))
)

/** A temporary copy of the repository's configuration. */
let repository = ""
const put = (path: string, text: string): string => {
  const to = join(repository, path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, text)
  return to
}

beforeAll(() => {
  repository = mkdtempSync(join(tmpdir(), "skein-conventions-"))
  copyFileSync(join(root, "oxlint.config.ts"), join(repository, "oxlint.config.ts"))
  put("scripts/layers.ts", readFileSync(join(root, "scripts/layers.ts"), "utf8"))
  copyFileSync(join(root, "tsconfig.base.json"), join(repository, "tsconfig.base.json"))
  symlinkSync(join(root, "node_modules"), join(repository, "node_modules"))
})
afterAll(() => rmSync(repository, { recursive: true, force: true }))

/** Returns the rules that the linter reports for a file, in a repository with no other problem. */
const broken = (path: string, text: string, others: Readonly<Record<string, string>> = {}): ReadonlyArray<string> => {
  rmSync(join(repository, "packages"), { recursive: true, force: true })
  for (const [other, content] of Object.entries(others)) put(other, content)
  put(path, text)
  const { stdout } = spawnSync(bin("oxlint"), ["--format", "json", path], { cwd: repository, encoding: "utf8" })
  const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: ReadonlyArray<{ readonly code: string }> }
  return diagnostics.map(({ code }) => code)
}

const imports = ["eslint(no-restricted-imports)"]
const uses = (from: string): string => `export * as X from "${from}"\n`

describe("the linter", () => {
  it("rejects an import of a package beside or above", () => {
    const direction = [
      ["protocol", ["runtime", "server", "client", "tasks"]],
      ["runtime", ["server", "client", "testing"]],
      ["server", ["client", "tasks", "sql", "cli", "examples"]],
      ["client", ["server", "tasks", "cli", "testing"]],
      ["testing", ["server", "client", "tasks", "sql", "cli", "interop"]],
      ["tasks", ["client", "testing", "cli"]],
      ["fleet", ["client", "tasks", "auth", "testing", "cli", "console"]],
      ["sql", ["protocol", "runtime", "server", "client", "tasks", "testing", "cli"]],
      ["auth", ["tasks", "testing", "sql", "cli"]],
      ["cli", ["testing", "sql", "openapi", "gateway"]],
      ["console", ["client", "cli", "testing"]],
      ["create-skein", ["protocol", "runtime", "server", "client", "tasks", "cli"]],
      ["openapi", ["client", "tasks", "auth", "console", "cli"]],
      ["gateway", ["tasks", "auth", "console", "cli", "testing", "openapi"]],
      ["apps", ["tasks", "auth", "console", "cli", "testing", "gateway"]],
      ["skills", ["tasks", "auth", "console", "cli", "testing", "apps"]],
      ["code-mode", ["client", "tasks", "auth", "console", "cli", "testing", "apps"]]
    ] as const
    for (const [name, others] of direction) {
      const text = others.map((other) => uses(`@skein/${other}/A`)).join("")
      expect(broken(`packages/${name}/src/A.ts`, text), `${name}`).toEqual(others.map(() => imports[0]))
    }
  })

  it("rejects an import of a server in the client side of auth, and of a client in its server side", () => {
    for (const module of ["client/OAuth", "client/flow/a"]) {
      expect(broken(`packages/auth/src/${module}.ts`, uses("@skein/client/A")), `${module}`).toEqual([])
      expect(broken(`packages/auth/src/${module}.ts`, uses("@skein/server/A")), `${module}`).toEqual(imports)
    }
    for (const module of ["server/Protect", "proxy/Proxy", "proxy/a"]) {
      expect(broken(`packages/auth/src/${module}.ts`, uses("@skein/server/A")), `${module}`).toEqual([])
      expect(broken(`packages/auth/src/${module}.ts`, uses("@skein/client/A")), `${module}`).toEqual(imports)
    }
    for (const module of ["client/protocol/a", "client/node/Loopback", "server/tokens/a", "shared/a", "testing/a"]) {
      expect(broken(`packages/auth/src/${module}.ts`, uses("@skein/server/A")), `${module}`).toEqual(imports)
      expect(broken(`packages/auth/src/${module}.ts`, uses("@skein/client/A")), `${module}`).toEqual(imports)
    }
    expect(broken("packages/auth/src/client/protocol/a.ts", uses("../flow/a.ts"))).toEqual(imports)
    expect(broken("packages/auth/src/client/flow/a.ts", uses("../protocol/a.ts"))).toEqual([])
    expect(broken("packages/auth/src/client/node/a.ts", uses("node:fs"))).toEqual([])
    expect(broken("packages/auth/src/client/flow/a.ts", uses("node:fs"))).toEqual(imports)
    expect(broken("packages/auth/src/testing/a.ts", uses("node:fs"))).toEqual([])
  })

  it("rejects an import of the other side in apps, and of both in a page", () => {
    const sides = [["server/A", "server", "client"], ["ui/a", "server", "client"], [
      "host/a",
      "client",
      "server"
    ]] as const
    for (const [module, allowed, refused] of sides) {
      expect(broken(`packages/apps/src/${module}.ts`, uses(`@skein/${allowed}/A`))).toEqual([])
      expect(broken(`packages/apps/src/${module}.ts`, uses(`@skein/${refused}/A`))).toEqual(imports)
      expect(broken(`packages/apps/src/${module}.ts`, uses("node:fs"))).toEqual(imports)
    }
    for (const side of ["client", "server", "runtime"]) {
      expect(broken("packages/apps/src/page/View.ts", uses(`@skein/${side}/A`))).toEqual(imports)
      expect(broken("packages/apps/src/shared/a.ts", uses(`@skein/${side}/A`))).toEqual(imports)
    }
    expect(broken("packages/apps/src/server/a.ts", uses("../ui/Ui.ts"))).toEqual(imports)
    expect(broken("packages/apps/src/ui/a.ts", uses("../page/View.ts"))).toEqual(imports)
  })

  it("rejects an import of the other side in skills, and of both in what they share", () => {
    for (const [side, other] of [["server", "client"], ["client", "server"]] as const) {
      for (const module of ["A", "internal/a"]) {
        expect(broken(`packages/skills/src/${side}/${module}.ts`, uses(`@skein/${side}/A`))).toEqual([])
        expect(broken(`packages/skills/src/${side}/${module}.ts`, uses(`@skein/${other}/A`))).toEqual(imports)
        expect(broken(`packages/skills/src/${side}/${module}.ts`, uses("node:fs"))).toEqual(imports)
      }
      expect(broken("packages/skills/src/shared/A.ts", uses(`@skein/${side}/A`))).toEqual(imports)
    }
    expect(broken("packages/skills/src/server/NodeSkills.ts", uses("node:fs"))).toEqual([])
  })

  it("rejects an import of either side in the presets of auth, except of its types", () => {
    for (
      const [module, beside] of [
        ["providers/Providers", "../client/OAuth.ts"],
        ["providers/a", "../server/Protect.ts"]
      ] as const
    ) {
      for (const path of ["@skein/client/A", "@skein/server/A", beside]) {
        const text = uses(path)
        expect(broken(`packages/auth/src/${module}.ts`, text), `${module}: ${path}`).toEqual(imports)
        expect(broken(`packages/auth/src/${module}.ts`, `import type { A } from "${path}"\nexport type B = A\n`))
          .toEqual([])
      }
    }
  })

  it("allows an import of a module of a package below", () => {
    for (const name of ["server", "client"]) {
      expect(broken(`packages/${name}/src/A.ts`, uses("@skein/protocol/A") + uses("@skein/runtime/A"))).toEqual([])
    }
    expect(broken("packages/runtime/src/A.ts", uses("@skein/protocol/A"))).toEqual([])
    const below = uses("@skein/protocol/A") + uses("@skein/runtime/A")
    expect(broken("packages/testing/src/internal/a.ts", below + uses("node:fs"))).toEqual([])
    const engine = ["protocol", "runtime", "server", "sql"].map((name) => uses(`@skein/${name}/A`)).join("")
    expect(broken("packages/tasks/src/A.ts", engine)).toEqual([])
    const program = ["protocol", "runtime", "server", "client", "auth", "console"].map((name) =>
      uses(`@skein/${name}/A`)
    ).join("")
    expect(broken("packages/cli/src/A.ts", program)).toEqual([])
    expect(broken("packages/sql/src/SqliteClient.ts", uses("node:sqlite") + uses("pg"))).toEqual([])
  })

  it("rejects an import of an index, of another package by path, and of a package by itself", () => {
    expect(broken("packages/server/src/A.ts", uses("@skein/protocol"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("./index.ts"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("../../protocol/src/A.ts"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("@skein/server/B"))).toEqual(imports)
  })

  it("rejects an import of a barrel of Effect, static, as a re-export or dynamic", () => {
    expect(broken("packages/runtime/src/A.ts", uses("effect"))).toEqual(imports)
    expect(broken("packages/server/src/A.ts", uses("@effect/platform-node"))).toEqual(imports)
    expect(broken("packages/client/src/A.ts", uses("effect/http"))).toEqual(imports)
    expect(broken("packages/client/src/A.ts", "export const a = () => import(\"effect\")\n")).toEqual(imports)
    expect(broken("packages/runtime/src/A.ts", uses("effect/Effect") + uses("effect/encoding/Base64"))).toEqual([])
  })

  it("rejects Node's modules and globals outside the modules that are listed for them", () => {
    for (const name of ["protocol", "runtime", "server", "client", "auth", "tasks", "cli"]) {
      expect(broken(`packages/${name}/src/A.ts`, `${uses("node:fs")}export const a = process.argv\n`).toSorted())
        .toEqual(["eslint(no-restricted-globals)", ...imports])
    }
    expect(broken("packages/server/src/Stdio.ts", uses("node:fs"))).toEqual([])
    expect(broken("packages/client/src/internal/stdio/child.ts", uses("node:child_process"))).toEqual([])
    expect(broken("packages/cli/src/internal/base/nodeProcess.ts", uses("node:readline"))).toEqual([])
    expect(broken("packages/client/src/Stdio.ts", uses("@skein/server/Stdio"))).toEqual(imports)
    expect(broken("packages/runtime/src/NodeStreams.ts", "export type { A } from \"node:fs\"\n")).toEqual([])
    expect(broken("packages/runtime/src/NodeStreams.ts", uses("node:fs"))).toEqual(imports)
  })

  for (const [name, rows] of Object.entries(layers)) {
    it(`${name}: rejects imports of layers above and beside, and allows those of layers below`, () => {
      rmSync(join(repository, "packages"), { recursive: true, force: true })
      const src = join("packages", name, "src")
      const places = Object.keys(rows).flatMap((layer) => placesIn(rows, layer).map((path) => ({ layer, path })))
      for (const { layer, path } of places) {
        const shown = ({ layer: to, path: target }: { readonly layer: string; readonly path: string }) => {
          const from = posix.relative(posix.dirname(path), target)
          const isType = rows[layer]!.typesOf?.includes(to) === true
          return `export ${isType ? "type " : ""}* as ${to.replaceAll("/", "_")} from "${
            from.startsWith(".") ? from : `./${from}`
          }" // ${layer} ${to}\n`
        }
        put(join(src, path), places.filter((other) => other.path !== path).map(shown).join(""))
      }
      const expected = places.map(({ layer, path }) => [
        path,
        // The entry `index.ts` of the package skein is for programs: another rule refuses it to every module.
        places.flatMap(({ layer: to, path: other }) =>
          other === path ? [] : [other === "index.ts", !allowedLayers(rows, layer).includes(to)]
        ).filter((isRefused) => isRefused).length
      ])
      const { stdout } = spawnSync(bin("oxlint"), ["--format", "json", src], {
        cwd: repository,
        encoding: "utf8",
        maxBuffer: 64 * 1024 * 1024
      })
      const { diagnostics } = JSON.parse(stdout) as {
        readonly diagnostics: ReadonlyArray<{ readonly code: string; readonly filename: string }>
      }
      const restricted = diagnostics.filter(({ code }) => code === imports[0])
      expect(places.map(({ path }) => [path, restricted.filter(({ filename }) => filename === join(src, path)).length]))
        .toEqual(expected)
    })
  }

  it("rejects a cycle of imports, of types too", () => {
    expect(broken("packages/client/src/A.ts", "import { b } from \"./B.ts\"\nexport const a = (): number => b()\n", {
      "packages/client/src/B.ts": "import { c } from \"./C.ts\"\nexport const b = (): number => c()\n",
      "packages/client/src/C.ts": "import { a } from \"./A.ts\"\nexport const c = (): number => a()\n"
    })).toEqual(["import(no-cycle)"])
    expect(broken("packages/client/src/A.ts", "import type { B } from \"./B.ts\"\nexport type A = B\n", {
      "packages/client/src/B.ts": "import type { A } from \"./A.ts\"\nexport type B = A | 1\n"
    })).toEqual(["import(no-cycle)"])
  })

  it("rejects console and `any` in a library", () => {
    expect(broken("packages/server/src/Stdio.ts", "console.log(1)\n")).toEqual(["eslint(no-console)"])
    expect(broken("packages/server/src/A.ts", "export type A = any\n")).toEqual(["typescript(no-explicit-any)"])
  })
})

/**
 * Returns a path for each place of a layer: a public module, a module of each folder, and one two folders deeper. The
 * linter's patterns cannot tell a deeper folder from that of another layer inside of the folder: there
 * `scripts/imports.ts` alone rejects an import.
 */
const placesIn = (rows: Layers, name: string): ReadonlyArray<string> => {
  const folders = Object.entries(rows).flatMap(([other, row]) => foldersOf(other, row))
  return [
    ...(rows[name]!.modules ?? []).slice(0, 2).map((module) => `${module}.ts`),
    ...foldersOf(name, rows[name]!).flatMap((folder) =>
      [
        `${folder}/module.ts`,
        ...folders.some((other) => other.startsWith(`${folder}/`)) ? [] : [`${folder}/deep/er/module.ts`]
      ].map(posix.normalize)
    )
  ]
}

describe("the check of tracked files", () => {
  const lines = (count: number): Buffer => Buffer.from("x\n".repeat(count))

  it("rejects a file above the limit, with or without a newline at its end", () => {
    expect(problem("a.md", lines(maxLines))).toBeUndefined()
    expect(problem("a.md", Buffer.from("x\n".repeat(maxLines) + "x"))).toContain(`${maxLines + 1} lines exceed`)
    expect(problem("a.md", lines(maxLines + 1))).toContain(`${maxLines + 1} lines exceed`)
  })

  it("rejects a short module unless it is public or a program", () => {
    const short = lines(minModuleLines - 1)
    expect(problem("packages/server/src/internal/a.ts", short)).toContain(`fewer than ${minModuleLines}`)
    expect(problem("packages/server/src/internal/a.ts", lines(minModuleLines))).toBeUndefined()
    expect(problem("packages/server/src/A.ts", short)).toBeUndefined()
    expect(problem("packages/client/src/bin/a.ts", short)).toBeUndefined()
    expect(problem("packages/server/test/internal/a.ts", short)).toBeUndefined()
  })

  it("warns of a large module, and not of another large file", () => {
    const large = lines(largeModuleLines + 1)
    expect(warning("packages/server/src/internal/a.ts", large)).toContain(`more than ${largeModuleLines}`)
    expect(warning("packages/server/src/A.ts", lines(largeModuleLines))).toBeUndefined()
    expect(warning("packages/server/test/a.ts", large)).toBeUndefined()
    expect(problem("packages/server/src/A.ts", large)).toBeUndefined()
  })

  it("ignores the lines of a binary file and of a dashboard", () => {
    expect(problem("docs/grafana/a.json", lines(maxLines + 1))).toBeUndefined()
    expect(problem("a.png", Buffer.from("\0" + "\n".repeat(maxLines + 1)))).toBeUndefined()
  })

  it("rejects a lock file that names a registry or lacks a platform, whatever its length", () => {
    const lock = (packages: object): string | undefined =>
      problem("package-lock.json", Buffer.from(JSON.stringify({ packages }, null, 2)))
    const tool = { version: "1.0.0", optionalDependencies: { "tool-linux": "1.0.0" } }
    expect(problem("package-lock.json", Buffer.from("{}" + "\n".repeat(maxLines + 1)))).toBeUndefined()
    expect(lock({ "node_modules/a": { resolved: "https://example.org/a.tgz" } })).toContain("address of a registry")
    expect(lock({ "node_modules/tool": tool })).toBe("package-lock.json: lacks tool-linux")
    expect(lock({ "node_modules/tool": tool, "node_modules/tool-linux": { optional: true } })).toBeUndefined()
  })
})

describe("the type check", () => {
  it("rejects a floating effect and a missing `return yield*`", () => {
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
    const { status, stdout } = spawnSync(bin("tsc"), ["-p", "check", "--noEmit"], { cwd: repository, encoding: "utf8" })
    expect(stdout).toContain("A.ts(3,3): error TS377001")
    expect(stdout).toContain("A.ts(4,23): error TS377006")
    expect(status).not.toBe(0)
  })
})

describe("the build", () => {
  /** Compiles a copy of the packages in which one has a module with this import. */
  const build = (name: string, from: string) => {
    rmSync(join(repository, "packages"), { recursive: true, force: true })
    for (const each of packages) {
      put(`packages/${each}/tsconfig.json`, readFileSync(join(root, "packages", each, "tsconfig.json"), "utf8"))
      put(`packages/${each}/package.json`, "{ \"type\": \"module\" }")
      put(`packages/${each}/src/Module.ts`, "export const a = 1\n")
    }
    put(`packages/${name}/src/A.ts`, `export { a } from "${from}"\n`)
    const { status, stdout } = spawnSync(bin("tsc"), ["-b", `packages/${name}`], { cwd: repository, encoding: "utf8" })
    const emitted = readdirSync(join(repository, "packages"), { recursive: true, encoding: "utf8" })
      .filter((path) => /\bsrc\b.*\.(js|d\.ts)$/.test(path))
    return { ok: status === 0, emitted, unlisted: /A\.ts\(1,19\): error TS6307/.test(stdout) }
  }

  it("rejects an import that is not a project reference, and emits nothing beside the sources", () => {
    const refused = { ok: false, emitted: [], unlisted: true }
    expect(build("protocol", "@skein/runtime/Module")).toEqual(refused)
    expect(build("runtime", "@skein/server/Module")).toEqual(refused)
    expect(build("server", "@skein/client/Module")).toEqual(refused)
    expect(build("client", "@skein/server/Module")).toEqual(refused)
    expect(build("client", "@skein/testing/Module")).toEqual(refused)
    expect(build("client", "@skein/cli/Module")).toEqual(refused)
    expect(build("cli", "@skein/gateway/Module")).toEqual(refused)
    expect(build("tasks", "@skein/client/Module")).toEqual(refused)
    expect(build("server", "@skein/tasks/Module")).toEqual(refused)
    const fine = { ok: true, emitted: [], unlisted: false }
    expect(build("client", "@skein/protocol/Module")).toEqual(fine)
    expect(build("cli", "@skein/client/Module")).toEqual(fine)
    expect(build("server", "@skein/runtime/Module")).toEqual(fine)
    expect(build("tasks", "@skein/server/Module")).toEqual(fine)
  })
})

describe("the code that an unused module leaves in a bundle", () => {
  const left = (code: string): Promise<string> => leftover(put("left/A.js", code))

  it("reports nothing for a module that only creates values", async () => {
    expect(
      await left("import * as X from \"effect/X\"\nexport const a = /*#__PURE__*/X.f()\nexport class B { b = a }\n")
    )
      .toBe("")
    expect(await left("export const maxBytes = 4 * 1024 * 1024\n")).toBe("")
  })

  it("reports a bare call, an unmarked call and a static block", async () => {
    expect(await left("globalThis.register(1)\n")).toContain("register")
    expect(await left("export const a = globalThis.f()\n")).toContain("globalThis.f()")
    expect(await left("export class B { static { this.b = 1 } }\n")).toContain("static")
  })
})

describe("the packages", () => {
  for (const name of packages) {
    it(`${name}: documents each exported name`, () => {
      const folder = join(root, "packages", name)
      expect(
        publicModules(folder).flatMap(({ path }) =>
          undocumented(readFileSync(join(folder, "src", `${path}.ts`), "utf8")).map((name) => `${path}: ${name}`)
        )
      )
        .toEqual([])
    })
  }
})

/**
 * Returns the exported names of a module that have no comment. The type of a schema shares the comment of its schema,
 * and a row in the table of methods does not need one.
 */
const undocumented = (text: string): ReadonlyArray<string> => {
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

  it("runs as one file without the unused values of its modules", async () => {
    for (const [path, text] of Object.entries(source)) put(path, text)
    const [entry, outfile, plain] = ["app.ts", "app.mjs", "plain.mjs"].map((path) => join(repository, path)) as [
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

  it("provides `require` to a CommonJS dependency", async () => {
    put("cjs/old.cjs", "module.exports = () => require(\"node:path\").sep\n")
    const entry = put("cjs/app.ts", "import sep from \"./old.cjs\"\nconsole.log(sep())\n")
    const outfile = join(repository, "cjs/out.mjs")
    await bundle({ entry, outfile })
    expect(execFileSync(process.execPath, [outfile], { encoding: "utf8" })).toBe("/\n")
  })
})
