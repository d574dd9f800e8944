/**
 * `npm run runtimes`: uses the packed package `skein` on the runtimes that it supports (Node 22, Bun and Deno, and with `--all` Node 24 and 26 too), in a project that has nothing else of this
 * repository: a program of its own, and the programs of the guides and of the comparison with their tests. Run `npm run build`
 * first. It downloads the runtimes.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { blocksOf } from "../../docs/test/blocks.ts"
import { bundled, root } from "../build.ts"
import { runNpm } from "../tarballs.ts"
import { type Programs, writePrograms } from "./programs.ts"

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
  ...(process.argv.includes("--all") ? [node("24"), node("26")] : []),
  { name: "Bun", install: "bun", program: ".bin/bun", args: [] },
  { name: "Deno", install: "deno", program: ".bin/deno", args: ["run", "-A"] }
]

/** The packages that the pages install beside `skein`, and those that the tests need. */
const others = [
  ...["zod@4", "express@5", "rolldown@1.2", "vitest@5", "vite@8", "@types/node@24", "@types/express@5"],
  "hono@4",
  "jose@6"
]

const checks = 4

/** The options of the tests are those of `vitest.workspace.ts`, with more workers: the tests wait for other programs. */
const vitestConfig = ({ tests }: Programs): string =>
  `export default ${
    JSON.stringify({
      test: {
        include: tests,
        pool: "forks",
        maxWorkers: 4,
        env: { SKEIN_DEVELOPMENT: "false" },
        testTimeout: 120_000,
        hookTimeout: 120_000,
        expect: { poll: { timeout: 60_000 } }
      }
    })
  }\n`

/** The settings of the compiler that a page shows, for all programs. */
const typeConfig = ({ checked }: Programs): string => {
  const shown = blocksOf("by-hand.md").find(({ text }) => text.includes("compilerOptions"))!
  return JSON.stringify({ ...JSON.parse(shown.text) as object, files: checked })
}

/** The report of Vitest. */
interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly assertionResults: ReadonlyArray<{ readonly status: string }>
  }>
}

/** Runs the tests, and returns the number of those that passed in each file. Fails if one did not pass. */
const runTests = (project: string, { args, name, program }: Runtime): ReadonlyMap<string, number> => {
  const file = join(project, "report.json")
  rmSync(file, { force: true })
  const vitest = [join(project, "node_modules/vitest/vitest.mjs"), "run", "--reporter=default", "--reporter=json"]
  const { status, stderr, stdout } = spawnSync(
    join(project, "node_modules", program),
    [...args, ...vitest, `--outputFile=${file}`],
    { cwd: project, encoding: "utf8", timeout: 300_000 }
  )
  if (status !== 0) throw new Error(`a test failed on ${name}:\n${stdout}${stderr}`)
  const { testResults } = JSON.parse(readFileSync(file, "utf8")) as Report
  return new Map(testResults.map(({ assertionResults, name }) => [
    relative(project, name),
    assertionResults.filter(({ status }) => status === "passed").length
  ]))
}

const project = mkdtempSync(join(tmpdir(), "skein-runtimes-"))
try {
  mkdirSync(join(project, "tarball"))
  runNpm(bundled, "pack", "--silent", "--pack-destination", join(project, "tarball"))
  const [tarball] = readdirSync(join(project, "tarball"))
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "runtimes", private: true, type: "module" }))
  const installs = [...others, ...runtimes.map(({ install }) => install)]
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--silent"]
  runNpm(project, "install", ...flags, `./tarball/${tarball}`, ...installs)
  const programs = writePrograms(project)
  writeFileSync(join(project, "vitest.config.js"), vitestConfig(programs))
  writeFileSync(join(project, "tsconfig.json"), typeConfig(programs))
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", project], { cwd: project, stdio: "inherit" })
  console.log(
    `${programs.checked.length} programs type-checked; the pages show ${programs.whole.length} of them as a whole, and ` +
      `${programs.parts.length} parts of others`
  )
  let expected: ReadonlyMap<string, number> | undefined
  for (const runtime of runtimes) {
    const { args, name, program } = runtime
    const begin = performance.now()
    const check = join(project, "scripts/runtimes/check.ts")
    const out = execFileSync(join(project, "node_modules", program), [...args, check, ...args], {
      cwd: project,
      encoding: "utf8",
      timeout: 120_000
    })
    const passed = out.split("\n").filter((line) => line.startsWith("ok ")).length
    if (passed !== checks) throw new Error(`${name} passed ${passed} of ${checks} checks:\n${out}`)
    const tests = runTests(project, runtime)
    expected ??= tests
    for (const file of programs.tests) {
      const count = tests.get(file) ?? 0
      if (count === 0 || count !== expected.get(file)) throw new Error(`${name}: ${count} tests passed in ${file}`)
    }
    const count = Array.from(tests.values()).reduce((sum, count) => sum + count, 0)
    const seconds = Math.round((performance.now() - begin) / 1_000)
    console.log(`${name}: ${passed} checks and ${count} tests of ${tests.size} files passed in ${seconds} s`)
  }
} finally {
  rmSync(project, { recursive: true, force: true })
}
