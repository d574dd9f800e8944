/**
 * The installation of the package `skein`, from its packed file, and of other libraries for servers with async functions:
 *
 * - the time of `npm install` in an empty project, with an empty cache of npm and with the cache that it has filled;
 * - the bytes in the cache after that: the packed packages, and their metadata;
 * - the installed bytes and packages.
 *
 * Rounds are interleaved, and each library is compared with `skein` in the same round. The time depends on the registry, to which
 * also a filled cache leads npm: it asks for newer versions. The packed file of `skein` is not downloaded.
 */
import { execFileSync } from "node:child_process"
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { describe } from "../lib/machine.ts"
import { ratios, spread } from "../lib/statistics.ts"
import { count, markdown, ratio } from "../lib/table.ts"

interface Library {
  readonly label: string
  readonly packages: ReadonlyArray<string>
}

const librariesOf = (tarball: string): ReadonlyArray<Library> => [
  { label: "skein, zod", packages: [tarball, "zod@4"] },
  { label: "skein", packages: [tarball] },
  { label: "SDK v1 1.32.2, zod", packages: ["@modelcontextprotocol/sdk@1.32.2", "zod@4"] },
  { label: "SDK v2 2.4.0, zod", packages: ["@modelcontextprotocol/server@2.4.0", "zod@4"] },
  { label: "fastmcp of npm, zod", packages: ["fastmcp", "zod@4"] }
]

const npm = process.env["npm_execpath"]

/** The bytes of the files below a folder. */
const bytesOf = (folder: string): number =>
  globSync("**/*", { cwd: folder, withFileTypes: true })
    .reduce((sum, file) => file.isFile() ? sum + statSync(join(file.parentPath, file.name)).size : sum, 0)

/** Installs packages in a new project, and returns the milliseconds. */
const install = (project: string, cache: string, { packages }: Library): number => {
  rmSync(project, { recursive: true, force: true })
  mkdirSync(project)
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "installed", private: true, type: "module" }))
  const [file, first] = npm === undefined ? ["npm", []] : [process.execPath, [npm]]
  const flags = ["--no-audit", "--no-fund", "--silent", "--cache", cache]
  const begin = performance.now()
  execFileSync(file, [...first, "install", ...flags, ...packages], {
    cwd: project,
    stdio: ["ignore", "ignore", "inherit"]
  })
  return performance.now() - begin
}

interface Installation {
  readonly empty: number
  readonly filled: number
  readonly cached: number
  readonly installed: number
  readonly packages: number
}

const measure = (folder: string, library: Library): Installation => {
  const [project, cache] = [join(folder, "project"), join(folder, "cache")]
  rmSync(cache, { recursive: true, force: true })
  const empty = install(project, cache, library)
  const cached = bytesOf(join(cache, "_cacache/content-v2"))
  const filled = install(project, cache, library)
  const modules = join(project, "node_modules")
  const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8")) as { readonly packages: object }
  return { empty, filled, cached, installed: bytesOf(modules), packages: Object.keys(lock.packages).length }
}

const usage = "usage: npm run bench -- install --package=<packed file of skein> [--quick]"

/** Runs the benchmark and prints its table. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  let tarball: string | undefined
  let rounds = 5
  for (const arg of args) {
    if (arg === "--quick") rounds = 1
    else if (arg.startsWith("--package=")) tarball = resolve(arg.slice("--package=".length))
    else throw new Error(`${arg}: not an option\n${usage}`)
  }
  if (tarball === undefined) throw new Error(usage)
  console.log(`${describe()} · npm run bench -- ${["install", ...args].join(" ")}\n`)
  const libraries = librariesOf(tarball)
  const samples = libraries.map((): Array<Installation> => [])
  const folder = mkdtempSync(join(tmpdir(), "skein-install-"))
  try {
    for (let round = 0; round < rounds; round++) {
      // Every second round is in the reverse order.
      const order = [...libraries.keys()]
      for (const at of round % 2 === 0 ? order : order.toReversed()) {
        samples[at]!.push(measure(folder, libraries[at]!))
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const columns = (at: number, figure: "empty" | "filled"): ReadonlyArray<string> => {
    const of = (at: number) => samples[at]!.map((sample) => sample[figure])
    return [ratio(ratios(of(at), of(0))), (spread(of(at)).median / 1_000).toFixed(2)]
  }
  const megabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1)
  console.log(markdown(
    ["library", "empty cache / skein", "s", "filled cache / skein", "s", "cached MB", "installed MB", "packages"],
    libraries.map(({ label }, at) => {
      const { cached, installed, packages } = samples[at]!.at(-1)!
      return [
        label,
        ...columns(at, "empty"),
        ...columns(at, "filled"),
        megabytes(cached),
        megabytes(installed),
        count(packages)
      ]
    })
  ))
  console.log(
    "\nA ratio is the median over the rounds of a library's time divided by that of skein with zod (min–max)."
  )
}
