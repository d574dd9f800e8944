/**
 * Runs the referee against a server, and reads what it writes down.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { excuse, expected, read, referee, scenarioTimeout, type Selection } from "./referee.ts"
import type { Outcome } from "./report.ts"

/** Runs what is selected against the server at `url`. What ought to have run and did not is in the outcome, as failed. */
export const run = async (url: string, selection: Selection): Promise<Outcome> => {
  const { revision, whole = false } = selection
  const all = await expected("server", selection)
  const select = whole ? ["--suite", "all", "--spec-version", revision] : ["--requirements", revision]
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const output = await referee(["server", "--url", url, ...select, "--timeout", `${scenarioTimeout}`, "-o", folder])
    const checks = await read("server", folder)
    const scenarios = all.map((one) => ({ ...one, checks: checks.get(one.name) ?? excuse(one.name, output) }))
    return { revision, label: whole ? "all" : "scored", scenarios }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
