/**
 * `npm run projects`: creates a project of each template and style as a user does, from the packed packages.
 *
 * `npm exec` runs `create-skein` from its tarball, and `npm install` takes the packages of Skein from their tarballs and
 * all others from the registry or from npm's cache. Each project is checked, tested and bundled. The client of the
 * official SDK calls a tool of its bundle, and one of the package that a project on stdio is. The servers of the
 * quickstarts are started in a project without a template. Run `npm run build` before it.
 */
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { styles, type Template, templates } from "../packages/create-skein/src/internal/choices.ts"
import { checkCopies } from "./peers.ts"
import { driveHttp, driveStdio } from "./projectClients.ts"
import { startQuickstarts } from "./quickstarts.ts"
import { createProject, pack, runNpm } from "./tarballs.ts"

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

const temporary = mkdtempSync(join(tmpdir(), "skein-created-"))
try {
  const bundles = join(temporary, "bundles")
  mkdirSync(bundles)
  const tarballs = pack(join(temporary, "tarballs"))
  const packages = tarballs.filter((path) => !path.includes("create-skein-"))
  for (const template of Object.keys(templates) as ReadonlyArray<Template>) {
    for (const style of Object.keys(styles)) {
      const start = performance.now()
      const name = `${template}-${style}`
      const project = createProject(temporary, tarballs, name, "--template", template, "--style", style)
      runNpm(project, "install", "--no-save", "--prefer-offline", "--no-audit", "--no-fund", "--silent", ...packages)
      checkCopies(project)
      for (const script of ["check", "test", "build"]) runNpm(project, "run", "--silent", script)
      await startBundle(template, project, join(bundles, name))
      if (template === "stdio") await startPackage(name, project, join(bundles, `packed-${style}`))
      console.log(
        `${name}: created, checked, tested, bundled and started in ${Math.round(performance.now() - start)} ms`
      )
      // The dependencies of eight projects would take more than a gigabyte.
      rmSync(project, { recursive: true })
    }
  }
  await startQuickstarts(join(temporary, "hello"), packages, runNpm)
} catch (error) {
  // A tool that fails explains it on stdout.
  const { stdout } = error as { readonly stdout?: unknown }
  if (typeof stdout === "string") console.error(stdout)
  throw error
} finally {
  rmSync(temporary, { recursive: true, force: true })
}
