/**
 * `npm run projects`: creates a project of each template as a user does, from the packed packages, in one style each, and with
 * `--all` in each style.
 *
 * `npm exec` runs `create-skein` from its tarball, and `npm install` takes the packages of Skein from their tarballs and
 * all others from the registry or from npm's cache. Each project is checked, tested and bundled. The client of the
 * official SDK calls a tool of its bundle, and one of the package that a project on stdio is. The server of
 * `by-hand.md` is started in a project without a template. Run `npm run build` before it.
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { styles, type Template, templates } from "../packages/create-skein/src/internal/choices.ts"
import { checkCopies } from "./peers.ts"
import { driveHttp, driveStdio } from "./projectClients.ts"
import { startQuickstart } from "./quickstarts.ts"
import { createProject, pack, runNpm } from "./tarballs.ts"

/** The option that tries each template in each style. */
const all = "--all"
const isComplete = process.argv.includes(all)

/** The packages of the projects of a style: each has the program `skein` from another one. */
const ofStyle = (tarballs: ReadonlyArray<string>, style: string): ReadonlyArray<string> =>
  tarballs.filter((path) =>
    !path.includes("create-skein-") && /[/\\]skein-\d[^/\\]*$/.test(path) === (style === "async")
  )

/** Packs a server on stdio, installs the package in an empty folder as npx does, and starts it by its name. */
const startPackage = async (name: string, project: string, folder: string): Promise<void> => {
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), "{}")
  runNpm(project, "pack", "--silent", "--pack-destination", folder)
  const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz"))
  runNpm(folder, "install", "--offline", "--no-audit", "--no-fund", "--silent", join(folder, tarball!))
  const installed = readdirSync(join(folder, "node_modules")).filter((entry) => !entry.startsWith("."))
  if (installed.length !== 1) throw new Error(`${name} needs other packages: ${installed.join(", ")}`)
  const isWindows = process.platform === "win32"
  await driveStdio(folder, join(folder, "node_modules/.bin", isWindows ? `${name}.cmd` : name), [])
}

/** Starts the bundle in a folder that has nothing else, and uses it. */
const startBundle = async (template: Template, project: string, folder: string): Promise<void> => {
  cpSync(join(project, "dist"), folder, { recursive: true })
  if (template === "http" || template === "tasks") return driveHttp(template, folder)
  const main = join(folder, "main.cjs")
  if (template === "stdio") return driveStdio(folder, process.execPath, [main])
  const call = [main, "example", "reserve", "{\"day\":\"Monday\"}"]
  for (const [args, expected] of [[[main], "example reserve"], [call, "A table for 4 on Monday"]] as const) {
    const output = execFileSync(process.execPath, args, { cwd: project, encoding: "utf8", input: "4\n" })
    if (!output.includes(expected)) throw new Error(`${project}: ${JSON.stringify(output)} does not have ${expected}`)
  }
}

/** The templates that a style is tried with: every second one, or all. */
const templatesOf = (style: string): ReadonlyArray<Template> =>
  (Object.keys(templates) as ReadonlyArray<Template>)
    .filter((_, at) => isComplete || Object.keys(styles).indexOf(style) === at % Object.keys(styles).length)

/** Creates and uses the projects of one style, in a folder that has the tarballs. */
const useStyle = async (style: string, folder: string, tarballs: ReadonlyArray<string>): Promise<void> => {
  const bundles = join(folder, "bundles")
  mkdirSync(bundles, { recursive: true })
  for (const template of templatesOf(style)) {
    const start = performance.now()
    const name = `${template}-${style}`
    const project = createProject(folder, tarballs, name, "--template", template, "--style", style)
    const installing = ["install", "--no-save", "--prefer-offline", "--no-audit", "--no-fund", "--silent"]
    runNpm(project, ...installing, ...ofStyle(tarballs, style))
    checkCopies(project)
    for (const script of ["check", "test", "build"]) runNpm(project, "run", "--silent", script)
    await startBundle(template, project, join(bundles, name))
    if (template === "stdio") await startPackage(name, project, join(bundles, `packed-${style}`))
    console.log(
      `${name}: created, checked, tested, bundled and started in ${Math.round(performance.now() - start)} ms`
    )
    // The dependencies of all projects would take more than a gigabyte.
    rmSync(project, { recursive: true })
  }
}

/** Runs this script for one style in a process of its own. */
const runStyle = async (style: string, folder: string, tarballs: ReadonlyArray<string>): Promise<void> => {
  mkdirSync(folder)
  const args = [...process.execArgv, import.meta.filename, ...(isComplete ? [all] : []), style, folder, ...tarballs]
  const [code] = await once(spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit"] }), "exit")
  if (code !== 0) throw new Error(`the projects of the style ${style} failed`)
}

const main = async (): Promise<void> => {
  const temporary = mkdtempSync(join(tmpdir(), "skein-created-"))
  try {
    const tarballs = pack(join(temporary, "tarballs"))
    // One process for each core of a small machine.
    const runs = Object.keys(styles).map((style) => runStyle(style, join(temporary, style), tarballs))
    const failed = (await Promise.allSettled(runs)).find(({ status }) => status === "rejected")
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason
    await startQuickstart(join(temporary, "hello"), ofStyle(tarballs, "async")[0]!, runNpm)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

try {
  const [style, folder, ...tarballs] = process.argv.slice(2).filter((argument) => argument !== all)
  if (style === undefined || folder === undefined) await main()
  else await useStyle(style, folder, tarballs)
} catch (error) {
  // A tool that fails explains it on stdout.
  const { stdout } = error as { readonly stdout?: unknown }
  if (typeof stdout === "string") console.error(stdout)
  throw error
}
