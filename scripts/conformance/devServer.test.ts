/** The official conformance suite for authorization servers passes against `DevServer`, without a warning. */
import { expect, it } from "@effect/vitest"
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { runAuthorization } from "./devServer.ts"

it("passes every scenario for authorization servers", async () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-conformance-"))
  try {
    const { code, output, visits } = await runAuthorization(folder)
    const files = globSync("*/checks.json", { cwd: folder })
    const checks: ReadonlyArray<{ readonly id: string; readonly status: string }> = files.flatMap((file) =>
      JSON.parse(readFileSync(join(folder, file), "utf8"))
    )
    if (code !== 0) console.error(output)
    expect(checks.filter(({ status }) => status !== "SUCCESS")).toEqual([])
    expect([files.length, checks.length, code, visits]).toEqual([2, 3, 0, ["200"]])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
