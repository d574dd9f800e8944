import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")
const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The commands of a workflow, in their order. */
const commands = (workflow: string): ReadonlyArray<string> =>
  Array.from(workflow.matchAll(/^ +(?:- )?run: (.*)$/gm), ([, command]) => command!)

describe("the workflow checks", () => {
  const workflow = read(".github/workflows/checks.yml")

  it("runs each part of .ci/run in a job of its own, on pushes and pull requests", () => {
    expect(workflow).toMatch(/^on:\n {2}push:\n {4}branches: \[main\]\n {2}pull_request:$/m)
    const parts = /^ +part: \[(.*)\]$/m.exec(workflow)![1]!.replaceAll(",", "")
    expect(commands(workflow).at(-1)).toBe(".ci/run ${{ matrix.part }}")
    const { status, stderr } = spawnSync("bash", [".ci/run", "--help"], { cwd: root, encoding: "utf8" })
    expect(stderr).toBe(`usage: .ci/run [--release] [${parts}]\n`)
    expect(status).toBe(2)
  })
})

describe("the workflow publish", () => {
  const workflow = read(".github/workflows/publish.yml")

  it("builds and publishes a tag with the identity of its job", () => {
    expect(workflow).toMatch(/^on:\n {2}push:\n {4}tags: \["v\*"\]$/m)
    expect(workflow).toMatch(/^ {6}id-token: write$/m)
    expect(commands(workflow).slice(-3)).toEqual(["npm ci", "npm run build", "npm run release"])
  })
})
