/**
 * An order whose process dies at a commit of its database, and is restarted: at each commit, or at the first one with
 * a matching statement.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { check, read } from "./checks.ts"
import { Child } from "./child.ts"
import { kindOf } from "./orders.ts"
import { calls } from "./outsideLog.ts"

export interface Moment {
  readonly order: number
  readonly side: "before" | "after"
  /** The number of the commit, or a pattern of one of its statements. */
  readonly commit: number | string
}

export interface Survival {
  /**
   * The process's own report of where it died; `undefined` if it did not reach that commit, empty if it died in
   * another way.
   */
  readonly died: string | undefined
  readonly problems: ReadonlyArray<string>
}

/** Milliseconds that an order may take after the restart. */
const patience = 60_000

/** Dies once, and continues. */
export const survive = async ({ commit, order, side }: Moment): Promise<Survival> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-moment-"))
  const file = join(folder, "tasks.db")
  const outside = join(folder, "outside")
  const args = ["--file", file, "--outside", outside, "--order", String(order)]
  const about = `order ${order} (${kindOf(order)}), ${side} commit ${commit}`
  try {
    const first = new Child("killedProcess.ts", [...args, "--side", side, "--commit", String(commit)])
    const end = await first.ended
    if (end === 0) return { died: undefined, problems: problems(file, outside, about) }
    if (end !== "SIGKILL") return { died: "", problems: [`${about}: ended with ${end}\n${first.err}`] }
    const second = new Child("killedProcess.ts", args)
    const timer = setTimeout(() => void second.kill("SIGKILL"), patience)
    const code = await second.ended
    clearTimeout(timer)
    const died = first.err.trim()
    const where = `${about}: ${died}`
    return code === 0
      ? { died, problems: problems(file, outside, where) }
      : { died, problems: [`${where}: did not go on (${code})\n${second.err}`] }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const problems = (file: string, outside: string, about: string): ReadonlyArray<string> =>
  check(read(file), calls(outside), [], []).problems.map((problem) => `${about}: ${problem}`)

/** Dies at every commit of an order from this one on, in two processes at a time. */
export const everywhere = async (
  order: number,
  side: Moment["side"],
  first = 1
): Promise<{ readonly deaths: number; readonly problems: ReadonlyArray<string> }> => {
  const found: Array<string> = []
  let deaths = 0
  let commit = first - 1
  let over = false
  const next = async (): Promise<void> => {
    while (!over) {
      const { died, problems } = await survive({ order, side, commit: ++commit })
      found.push(...problems)
      if (died === undefined || died === "") over = true
      else deaths++
    }
  }
  await Promise.all([next(), next()])
  return { deaths, problems: found }
}
