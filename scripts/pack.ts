/**
 * `npm run pack`: packs each package and checks the tarballs as a user's project would see them.
 *
 * publint and attw check each tarball. Then all are installed with Effect in an empty project, without the source
 * condition: no package that an application shares is installed twice, Node imports every exported module, and the
 * compiler checks every declaration. The package `skein` is installed alone. Last, each project of a README gets only what
 * the README says to install: with `--quick` those of the first README only.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { bundled, packages, root } from "./build.ts"
import { checkEntries } from "./entries.ts"
import { leftover } from "./leftover.ts"
import { checkBundled } from "./packBundled.ts"
import { checkCopies } from "./peers.ts"
import { publicModules } from "./publicModules.ts"
import { runNpm } from "./tarballs.ts"

const run = (cwd: string, file: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(file, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })
const bin = (name: string): string => join(root, "node_modules", ".bin", name)

/** Returns the subpaths that a package exports: each public module. */
const subpaths = (folder: string): ReadonlyArray<string> =>
  publicModules(folder).map(({ name }) => name === "index" ? "." : `./${name}`)

/** The published name of a package. */
const nameOf = (folder: string): string =>
  (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { readonly name: string }).name

/** Fails if a file of `dist` imports a `.ts` source, which `dist` does not contain. */
const checkDeclarations = (folder: string): void => {
  const dist = join(folder, "dist")
  for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    if (!/(\.d\.ts|\.js)$/.test(file)) continue
    const found = /(?:from|import)\s*\(?\s*"(\.[^"]*(?<!\.d)\.ts)"/.exec(readFileSync(join(dist, file), "utf8"))
    if (found !== null) throw new Error(`${join(dist, file)} imports ${found[1]}, which is not in dist`)
  }
}

/** Modules that may leave code in a bundle, with the reason. */
const mayLeaveCode: ReadonlySet<string> = new Set([
  // A program. No module imports it.
  "testing/dist/internal/stdioProgram.js"
])

/** Fails if a module leaves code in a bundle that does not use it. */
const checkLeftovers = async (folder: string): Promise<void> => {
  for (const file of readdirSync(join(folder, "dist"), { recursive: true, encoding: "utf8" })) {
    const name = `${basename(folder)}/dist/${file}`
    // Programs are not imported.
    const isProgram = /^bin[/\\]/.test(file)
    if (!file.endsWith(".js") || isProgram || mayLeaveCode.has(name)) continue
    const left = await leftover(join(folder, "dist", file))
    if (left !== "") throw new Error(`${name} cannot be dropped from a bundle. It leaves this code:\n${left}`)
  }
}

const pack = (folder: string, into: string): string => {
  const before = new Set(readdirSync(into))
  runNpm(folder, "pack", "--silent", "--pack-destination", into)
  const name = readdirSync(into).find((file) => !before.has(file))
  if (name === undefined) throw new Error(`${folder}: npm pack wrote nothing`)
  return join(into, name)
}

/** Installs the tarballs and imports every module. Returns the number of modules. */
const smoke = (project: string, tarballs: ReadonlyArray<string>): number => {
  const { version } = JSON.parse(readFileSync(join(root, "node_modules/effect/package.json"), "utf8")) as {
    readonly version: string
  }
  mkdirSync(project)
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "smoke", private: true, type: "module" }))
  runNpm(
    project,
    "install",
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    "--silent",
    ...tarballs,
    `effect@${version}`
  )
  checkCopies(project)
  const modules = packages.flatMap((folder) => subpaths(folder).map((path) => `${nameOf(folder)}${path.slice(1)}`))
  writeFileSync(
    join(project, "smoke.mjs"),
    `for (const name of ${JSON.stringify(modules)}) {\n` +
      "  const at = import.meta.resolve(name)\n" +
      "  if (!/\\/node_modules\\/.*skein.*\\/dist\\//.test(at)) throw new Error(`${name} is ${at}`)\n" +
      "  await import(name)\n}\n" +
      // Internal modules are not exported.
      "try { await import(\"@skein/protocol/internal/any\"); throw new Error(\"internal is exported\") }\n" +
      "catch (error) { if (error.code !== \"ERR_PACKAGE_PATH_NOT_EXPORTED\") throw error }\n"
  )
  run(project, process.execPath, "smoke.mjs")
  // publint checks that the file of `bin` exists, not that it runs.
  for (
    const program of [
      "@skein/cli/dist/bin/skein",
      "@skein/cli/dist/bin/skein-call",
      "create-skein/dist/bin/create-skein"
    ]
  ) {
    run(project, process.execPath, `node_modules/${program}.js`, "--help")
  }
  // Without skipLibCheck, the compiler checks all declarations, those of the tarballs included.
  writeFileSync(join(project, "types.ts"), modules.map((name, at) => `export * as m${at} from "${name}"\n`).join(""))
  const options = ["--module", "nodenext", "--target", "es2023", "--strict", "--exactOptionalPropertyTypes"]
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")]
  run(project, bin("tsc"), "--noEmit", ...options, ...types, "types.ts")
  return modules.length
}

/** Packs a package, and checks the tarball with publint and attw. */
const packChecked = (folder: string): string => {
  const tarball = pack(folder, temporary)
  run(root, bin("publint"), tarball, "--strict")
  run(root, bin("attw"), tarball, "--profile", "esm-only", "--entrypoints", ...subpaths(folder))
  console.log(`${basename(tarball)}  publint and attw: passed`)
  return tarball
}

const temporary = mkdtempSync(join(tmpdir(), "skein-pack-"))
try {
  const tarballs: Array<string> = []
  for (const folder of packages) {
    checkDeclarations(folder)
    await checkLeftovers(folder)
    tarballs.push(packChecked(folder))
  }
  console.log(
    `${smoke(join(temporary, "project"), tarballs)} modules imported and type-checked from the installed tarballs`
  )
  const alone = packChecked(bundled)
  console.log(await checkBundled(bundled, join(temporary, "alone"), alone, runNpm))
  const projects = checkEntries(join(temporary, "entries"), [...tarballs, alone], process.argv.includes("--quick"))
  console.log(`modules imported in ${projects} projects that have what a README says to install`)
} catch (error) {
  // A tool that fails explains it on stdout.
  const { stdout } = error as { readonly stdout?: unknown }
  if (typeof stdout === "string") console.error(stdout)
  throw error
} finally {
  rmSync(temporary, { recursive: true, force: true })
}
