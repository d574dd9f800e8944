/**
 * `npm run runtimes`: uses the packed package `skein` on the runtimes that it supports, in a project that has nothing of this
 * repository. Run `npm run build` first. It downloads the runtimes.
 */
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { bundled } from "../build.ts"
import { runNpm } from "../tarballs.ts"

/** A package with a runtime, and how it executes a program. */
interface Runtime {
  readonly name: string
  readonly install: string
  readonly program: string
  /** The arguments before the path of a program. */
  readonly args: ReadonlyArray<string>
}

const node = (version: string): Runtime => ({
  name: `Node ${version}`,
  install: `node-${version}@npm:node-${process.platform}-${process.arch}@${version}`,
  program: `node-${version}/bin/node`,
  args: []
})

const runtimes: ReadonlyArray<Runtime> = [
  node("22"),
  node("24"),
  node("26"),
  { name: "Bun", install: "bun", program: ".bin/bun", args: [] },
  { name: "Deno", install: "deno", program: ".bin/deno", args: ["run", "-A"] }
]

const checks = 4

const project = mkdtempSync(join(tmpdir(), "skein-runtimes-"))
try {
  mkdirSync(join(project, "tarball"))
  runNpm(bundled, "pack", "--silent", "--pack-destination", join(project, "tarball"))
  const [tarball] = readdirSync(join(project, "tarball"))
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "runtimes", private: true, type: "module" }))
  const installs = runtimes.map(({ install }) => install)
  runNpm(project, "install", "--no-audit", "--no-fund", "--silent", `./tarball/${tarball}`, "zod@4", ...installs)
  cpSync(join(import.meta.dirname, "check.ts"), join(project, "check.ts"))
  for (const { args, name, program } of runtimes) {
    const out = execFileSync(join(project, "node_modules", program), [...args, join(project, "check.ts"), ...args], {
      cwd: project,
      encoding: "utf8",
      timeout: 120_000
    })
    const passed = out.split("\n").filter((line) => line.startsWith("ok ")).length
    if (passed !== checks) throw new Error(`${name} passed ${passed} of ${checks} checks:\n${out}`)
    console.log(`${name}: ${passed} checks passed`)
  }
} finally {
  rmSync(project, { recursive: true, force: true })
}
