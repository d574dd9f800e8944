/**
 * An order whose process dies at a commit of its database, and is started again: at each commit that there is, or at one that says
 * something.
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
  /** Its number, or what one of its statements is like. */
  readonly commit: number | string
}

export interface Survival {
  /** Where it died, in its own words; `undefined` where it did not come to that commit, empty where it fell on its own. */
  readonly died: string | undefined
  readonly problems: ReadonlyArray<string>
}

/** Milliseconds that an order may take, once it is started again. */
const patience = 60_000

/** Dies once, and goes on. */
export const survive = async ({ commit, order, side }: Moment): Promise<Survival> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-moment-"))
  const file = join(folder, "tasks.db")
  const outside = join(folder, "outside")
  const args = ["--file", file, "--outside", outside, "--order", String(order)]
  const about = `order ${order} (${kindOf(order)}), ${side} commit ${commit}`
  try {
    const first = new Child("moment.ts", [...args, "--side", side, "--commit", String(commit)])
    const end = await first.ended
    if (end === 0) return { died: undefined, problems: problems(file, outside, about) }
    if (end !== "SIGKILL") return { died: "", problems: [`${about}: ended with ${end}\n${first.err}`] }
    const second = new Child("moment.ts", [...args, "--later"])
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

/** Dies at every commit of an order from that one on, two at a time. */
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
