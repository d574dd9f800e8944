/** The program of the README, run as it stands there. */
import { expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../..")

it("the README's program prints what the README says", () => {
  const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8")
  const program = /```ts\n([^]*?)```/.exec(readme)?.[1] ?? ""
  const said = /It prints `(.*?)`/.exec(readme)?.[1]
  const folder = mkdtempSync(join(root, "scratchpad", "rude-"))
  try {
    const file = join(folder, "readme.ts")
    writeFileSync(file, program)
    const printed = execFileSync(process.execPath, ["--conditions=@skein/source", file], {
      cwd: root,
      encoding: "utf8"
    })
    expect(printed).toBe(`${said}\n`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
