/** Runs the program of the README. */
import { expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../..")

it("prints the line that the README quotes", () => {
  const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8")
  const program = /```ts\n([^]*?)```/.exec(readme)?.[1] ?? ""
  const expected = /It prints `(.*?)`/.exec(readme)?.[1]
  const folder = mkdtempSync(join(root, "scratchpad", "testing-"))
  try {
    const file = join(folder, "readme.ts")
    writeFileSync(file, program)
    const printed = execFileSync(process.execPath, ["--conditions=@skein/source", file], {
      cwd: root,
      encoding: "utf8"
    })
    expect(printed).toBe(`${expected}\n`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
