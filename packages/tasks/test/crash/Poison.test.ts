/** A task that ends each process that runs it, beside others. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { Child, killChildren } from "./child.ts"

it("gives up a task after it has ended 5 processes, and completes those beside it", { timeout: 240_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-poison-"))
  const starts = join(folder, "starts")
  try {
    const codes: Array<number | string> = []
    let states: ReadonlyArray<{ readonly tool: string; readonly status: string }> | undefined
    while (states === undefined) {
      const child = new Child("poisonProcess.ts", [join(folder, "tasks.db"), starts])
      states = await child.message()
      if (states === undefined) codes.push(await child.ended)
    }
    expect(codes).toEqual([13, 13, 13, 13, 13])
    expect(states.filter(({ tool }) => tool === "long").map(({ status }) => status)).toEqual(
      Array.from({ length: 6 }, () => "completed")
    )
    expect(states.filter(({ tool }) => tool === "poison")).toEqual([{
      tool: "poison",
      status: "failed",
      statusMessage: "The task was given up: 5 workers have ended while they ran it"
    }])
    // Twice beside the others, and once more at most while others recover.
    const runs = readFileSync(starts, "utf8").trim().split("\n")
    for (const name of ["1", "2", "3", "4", "5", "6"]) {
      expect(runs.filter((run) => run === name).length).toBeLessThanOrEqual(4)
    }
  } finally {
    killChildren()
    rmSync(folder, { recursive: true, force: true })
  }
})
