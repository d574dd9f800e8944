/** A process that is killed at each commit of a task that begins again (`Task.continueWith`). */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { Child } from "./child.ts"

/** Dies at a commit, and continues. Returns `undefined` if the process did not reach that commit. */
const survive = async (side: "before" | "after", commit: number) => {
  const folder = mkdtempSync(join(tmpdir(), "skein-continued-"))
  const file = join(folder, "tasks.db")
  const outside = join(folder, "outside")
  const args = ["--file", file, "--outside", outside]
  try {
    const first = new Child("continuedProcess.ts", [...args, "--side", side, "--commit", String(commit)])
    const end = await first.ended
    if (end === 0) return undefined
    expect([end, first.err]).toEqual(["SIGKILL", expect.stringContaining(`${side} commit ${commit}`)])
    const second = new Child("continuedProcess.ts", args)
    expect([await second.ended, second.err]).toEqual([0, expect.any(String)])
    const database = new DatabaseSync(file)
    const booked = database.prepare("SELECT round FROM ledger ORDER BY rowid").all().map(({ round }) => round)
    const [task] = database.prepare("SELECT status FROM skein_tasks").all()
    const log = database.prepare("SELECT kind, name FROM skein_task_log ORDER BY seq").all().map(({ kind, name }) =>
      `${String(kind)} ${String(name)}`
    )
    database.close()
    const calls = readFileSync(outside, "utf8").trim().split("\n")
    return { booked, calls: [...new Set(calls)], log, status: task?.["status"] }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("a process with a task that begins again", () => {
  for (const side of ["before", "after"] as const) {
    it(`is killed ${side} each commit: each round is booked once, under its own key`, async () => {
      let commit = 1
      for (;; commit++) {
        const found = await survive(side, commit)
        if (found === undefined) break
        const { calls, ...rest } = found
        expect({ commit, ...rest }).toEqual({
          commit,
          booked: [1, 2, 3],
          log: ["continued ", "step call", "step book"],
          status: "completed"
        })
        expect(calls.map((call) => call.split(" ")[0])).toEqual(["1", "2", "3"])
        expect(new Set(calls.map((call) => call.split(" ")[1])).size).toBe(3)
      }
      expect(commit).toBeGreaterThan(10)
    }, 240_000)
  }
})
