import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"

const steps = join(import.meta.dirname, "..", ".ci", "steps.sh")

/** Starts a script with the functions of `.ci/steps.sh`. */
const start = (script: string) => {
  const child = spawn("bash", ["-c", `set -euo pipefail; source "$0"; ${script}`, steps], {
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  for (const pipe of [child.stdout, child.stderr]) pipe.setEncoding("utf8").on("data", (text: string) => output += text)
  const ended = new Promise<{ readonly code: number | null; readonly output: string }>((resolve) => {
    child.on("close", (code) => resolve({ code, output }))
  })
  return { child, ended, output: () => output }
}

const run = (script: string) => start(script).ended

describe.skipIf(process.platform === "win32")("the steps of .ci/run", () => {
  let folder: string
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "skein-steps-"))))
  afterEach(() => rm(folder, { recursive: true }))

  /** Whether the process runs whose id a script has written to a file. A zombie does not. */
  const runs = async (name: string): Promise<boolean> => {
    const pid = Number(await readFile(join(folder, name), "utf8"))
    expect(pid).toBeGreaterThan(0)
    const { output } = await run(`ps -o stat= -p ${pid} || true`)
    return /^[^Z\s]/.test(output.trim())
  }
  /** A command that starts another process and waits for it. */
  const nested = () =>
    `bash -c 'echo $$ > ${folder}/outer; bash -c "echo \\$\\$ > ${folder}/inner; exec sleep 1000"; true'`

  it("prints the name and the seconds of a step that succeeds", async () => {
    const { code, output } = await run("step one 1 true; step two 1 echo hello")
    expect(output.replaceAll(/\d+ s/g, "… s")).toBe("==> one\n==> one: … s\n==> two\nhello\n==> two: … s\n")
    expect(code).toBe(0)
  })

  it("ends the script at a step that fails", async () => {
    const { code, output } = await run("step one 1 false; step two 1 echo hello")
    expect(output.replaceAll(/\d+ s/g, "… s")).toBe("==> one\n==> one FAILED after … s\n")
    expect(code).toBe(1)
  })

  it("runs a function as a step, and fails if a part of its pipeline fails", async () => {
    expect(await run("tests() { echo passed | tee /dev/null; }; step one 1 tests; echo end")).toMatchObject({ code: 0 })
    expect(await run("tests() { false | tee /dev/null; }; step one 1 tests; echo end")).toMatchObject({ code: 1 })
  })

  it("ends a command, with the processes that it has started, when its time is over", async () => {
    const { code, output } = await run(`limited 2 ${nested()}`)
    expect(output).toContain("==> not finished within 2 s")
    expect(code).toBe(143)
    expect(await runs("outer")).toBe(false)
    expect(await runs("inner")).toBe(false)
  })

  it("ends processes that a command has left", async () => {
    const { code } = await run(`limited 60 bash -c 'sleep 1000 & echo $! > ${folder}/left'`)
    expect(code).toBe(0)
    expect(await runs("left")).toBe(false)
  })

  it.each(["SIGTERM", "SIGINT"] as const)("ends the running command when the script receives %s", async (signal) => {
    const { child, ended } = start(`step one 10 ${nested()}`)
    await expect.poll(() => readFile(join(folder, "inner"), "utf8").catch(() => ""), { timeout: 60_000 }).toMatch(/\d/)
    child.kill(signal)
    expect((await ended).code).toBe(signal === "SIGTERM" ? 143 : 130)
    expect(await runs("inner")).toBe(false)
  })
})
