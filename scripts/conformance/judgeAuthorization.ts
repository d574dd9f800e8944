/**
 * Judges `DevServer` of `@skein/auth` as an authorization server. A test user visits the URLs that the suite prints.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { runAuthorization } from "./devServer.ts"
import { type Expectations, type Report, report } from "./report.ts"
import { failureReason, listAllScenarios, readChecks } from "./suite.ts"

/** The newest revision. The scenarios are the same at each of them. */
const revision = "2026-07-28"

const expected: Expectations = { [revision]: { scenarios: 2, minChecks: 3 } }

/** Runs all scenarios for authorization servers. `width` clips messages. */
export const judgeAuthorization = async (width: number | undefined): Promise<Report> => {
  const listed = await listAllScenarios("authorization")
  const folder = await mkdtemp(join(tmpdir(), "skein-conformance-"))
  try {
    const { code, output } = await runAuthorization(folder)
    const checks = await readChecks("authorization", folder)
    const scenarios = listed.map((one) => ({
      ...one,
      checks: checks.get(one.name) ?? failureReason(one.name, { code, stderr: output, stdout: "" })
    }))
    return report([{ selection: revision, label: "all", scenarios }], { expected, width })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
