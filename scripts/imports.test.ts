/** Tests of the check of imports, on a package of a few modules that breaks one rule at a time. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { problemsOf, readModules } from "./imports.ts"
import type { Layers } from "./layers.ts"

let src = ""
const put = (path: string, text: string): void => {
  mkdirSync(dirname(join(src, path)), { recursive: true })
  writeFileSync(join(src, path), text)
}

beforeAll(() => {
  src = mkdtempSync(join(tmpdir(), "skein-imports-"))
})
afterAll(() => rmSync(src, { recursive: true, force: true }))

const uses = (from: string): string => `export * as X from "${from}"\n`

describe("the check of imports", () => {
  const rows: Layers = {
    base: { modules: ["Base"] },
    left: { folders: ["left"] },
    right: { folders: ["right"], layers: ["base"] },
    top: { folders: ["top"], modules: ["Top"] }
  }
  const fine = {
    "Base.ts": "export const a = 1\n",
    "internal/base/a.ts": "export const a = 1\n",
    "left/a.ts": uses("../Base.ts"),
    "right/a.ts": uses("../internal/base/a.ts"),
    "top/a.ts": uses("../left/a.ts") + uses("../right/a.ts"),
    "Top.ts": uses("./top/a.ts")
  }
  const problems = (changed: Readonly<Record<string, string>>, of = rows): ReadonlyArray<string> => {
    rmSync(src, { recursive: true, force: true })
    for (const [path, text] of Object.entries({ ...fine, ...changed })) put(path, text)
    return problemsOf(of, readModules(src))
  }

  it("accepts imports of layers below", () => expect(problems({})).toEqual([]))

  it("rejects an import of a layer above or beside, in each form", () => {
    const refused = ["left/a.ts: imports top/a.ts of layer \"top\", which layer \"left\" may not import"]
    for (
      const text of [
        uses("../top/a.ts"),
        "import \"../top/a.ts\"\n",
        "export const a = () => import(\"../top/a.ts\")\n",
        "import type { A } from \"../top/a.ts\"\nexport type B = A\n",
        "export type A = typeof import(\"../top/a.ts\")\n",
        "export type { A } from \"./../top/a.ts\"\n"
      ]
    ) {
      expect([text, ...problems({ "left/a.ts": text, "top/a.ts": "export type A = 1\n" })]).toEqual([text, ...refused])
    }
    expect(problems({ "right/a.ts": uses("../left/a.ts") }))
      .toEqual(["right/a.ts: imports left/a.ts of layer \"left\", which layer \"right\" may not import"])
    expect(problems({ "Base.ts": uses("./Top.ts") })).toContain(
      "Base.ts: imports Top.ts of layer \"top\", which layer \"base\" may not import"
    )
  })

  it("rejects a circle of modules or of folders that `import()` or a type closes", () => {
    const lazy = (path: string): string => `export const a = () => import("${path}")\n`
    expect(problems({ "left/a.ts": lazy("./b.ts"), "left/b.ts": uses("./a.ts") }))
      .toEqual(["circle of modules: left/a.ts, left/b.ts"])
    expect(problems({ "left/a.ts": "export type A = import(\"./b.ts\").A\n", "left/b.ts": uses("./a.ts") }))
      .toEqual(["circle of modules: left/a.ts, left/b.ts"])
    expect(
      problems({ "left/a.ts": uses("./in/a.ts"), "left/in/a.ts": "", "left/in/b.ts": lazy("../b.ts"), "left/b.ts": "" })
    )
      .toEqual(["circle of folders and public modules: left, left/in"])
  })

  it("rejects a module without a layer, and a row without a module", () => {
    expect(problems({ "Other.ts": "", "other/a.ts": "" })).toEqual([
      "Other.ts: belongs to no layer: add it to one in scripts/layers.ts",
      "other/a.ts: belongs to no layer: add it to one in scripts/layers.ts"
    ])
    expect(problems({}, { ...rows, last: { folders: ["last", "top"], modules: ["Last", "Top"] } })).toEqual([
      "Top.ts: is listed in two layers",
      "top: is listed in two layers",
      "Last.ts: is listed in a layer, and does not exist",
      "last/: is the folder of a layer, and has no module"
    ])
    expect(problems({ "left/1/2/3/4/a.ts": "" }))
      .toEqual(["left/1/2/3/4/a.ts: is more than 3 folders below the folder of its layer"])
  })

  it("counts a module to the innermost folder that is listed", () => {
    const nested: Layers = { inner: { folders: ["left/in"] }, ...rows, left: { folders: ["left"] } }
    expect(problems({ "left/in/a.ts": "", "left/a.ts": uses("./in/a.ts") }, nested)).toEqual([])
    expect(problems({ "left/in/a.ts": uses("../a.ts") }, nested))
      .toEqual(["left/in/a.ts: imports left/a.ts of layer \"left\", which layer \"inner\" may not import"])
  })
})
