/** `skein dev --restart-only` as a process, with a program of its own. */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { mkdir, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { asWord, isAlive, makeProject, type Project, run, skein } from "./project.ts"

/** A program that reports its text and its process, and SIGTERM. */
const source = (text: string): string => `
console.error(${JSON.stringify(text)}, process.pid)
setInterval(() => {}, 1000)
process.on("SIGTERM", () => {
  console.error("ending ${text}")
  process.exit(0)
})
`

let project: Project
let main: string
beforeEach(async () => {
  project = await makeProject({})
  await mkdir(join(project.folder, "src"))
  main = join(project.folder, "src/main.ts")
  await writeFile(main, source("one"))
})
afterEach(() => project.remove())

const start = (...options: ReadonlyArray<string>) =>
  skein(project, ["dev", "--restart-only", "--watch", "src", ...options, asWord([process.execPath, "src/main.ts"])])

describe("skein dev --restart-only", () => {
  it("restarts a program after each kind of save, and ends it", async () => {
    const { child, ended, err, until } = start()
    await until(/^one \d/m)
    await writeFile(main, source("two"))
    await until("ending one")
    await until(/^two \d/m)
    // Many editors write another file, and rename it.
    for (const text of ["three", "four"]) {
      await writeFile(`${main}.new`, source(text))
      await rename(`${main}.new`, main)
      await until(new RegExp(`^${text} \\d`, "m"))
    }
    await writeFile(main, "const x = = 1\n")
    await until("The program has ended (exit code 1)")
    await until("Waiting for a change")
    await writeFile(main, source("five"))
    await until(/^five \d/m)
    child.kill("SIGTERM")
    assert.strictEqual(await ended, 143)
    const pids = Array.from(err().matchAll(/^\w+ (\d+)$/gm), ([, pid]) => Number(pid))
    assert.deepStrictEqual(pids.map(isAlive), [false, false, false, false, false])
  }, 60_000)

  it("kills a program that ignores SIGTERM, after --kill-timeout", async () => {
    await writeFile(main, "process.on(\"SIGTERM\", () => {})\nsetInterval(() => {}, 1000)\nconsole.error(\"ready\")\n")
    const { child, ended, err, until } = start("--kill-timeout", "0.5")
    await until("ready")
    child.kill("SIGINT")
    assert.strictEqual(await ended, 130)
    assert.include(err(), "The program did not end within 500ms, and is killed")
  }, 60_000)

  it("reports a program that cannot be started, and options that need a connection", async () => {
    const missing = skein(project, ["dev", "--restart-only", "--watch", "src", "no-such-program --here"])
    await missing.until("no-such-program cannot be started: spawn no-such-program ENOENT")
    missing.child.kill("SIGINT")
    assert.strictEqual(await missing.ended, 130)
    const { code, err } = await run(project, ["dev", "--restart-only", "--http", "node src/main.ts"])
    assert.strictEqual(code, 2)
    assert.include(err, "--restart-only cannot be used with --http and --inspector")
  }, 60_000)
})
