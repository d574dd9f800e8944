/**
 * `npm run projects`: creates a project of each template and style as a user does, from the packed packages.
 *
 * `npm exec` runs `create-skein` from its tarball, and `npm install` takes the packages of Skein from their tarballs and
 * all others from the registry or from npm's cache. Each project is checked, tested and bundled, and its bundle is
 * started. The servers of the quickstarts are started in a project without a template. Run `npm run build` before it.
 */
import { execFileSync, spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { styles, templates } from "../packages/create-skein/src/internal/choices.ts"
import { root } from "./build.ts"
import { checkCopies } from "./peers.ts"
import { startQuickstarts } from "./quickstarts.ts"

/** The packages that the projects need, with those that they import. */
const names = ["protocol", "runtime", "server", "client", "sql", "tasks", "create-skein"]

const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "projects", version: "1.0.0" } }
})

/** The path of the npm that runs this script. */
const npm = process.env["npm_execpath"]
const runNpm = (cwd: string, ...args: ReadonlyArray<string>): string => {
  const [file, first] = npm === undefined ? ["npm", []] : [process.execPath, [npm]]
  return execFileSync(file, [...first, ...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })
}

const pack = (into: string): ReadonlyArray<string> => {
  for (const name of names) {
    const folder = join(root, "packages", name)
    if (!existsSync(join(folder, "dist"))) throw new Error(`${folder} has no dist: run npm run build`)
    runNpm(folder, "pack", "--silent", "--pack-destination", into)
  }
  return readdirSync(into).filter((file) => file.endsWith(".tgz")).map((file) => join(into, file))
}

/** Starts a server over HTTP, and returns after it has answered a probe. */
const probe = (folder: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const env = { ...process.env, SKEIN_PORT: "0" }
    const child = spawn(process.execPath, ["main.cjs"], { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] })
    let log = ""
    let answer: Promise<Response> | undefined
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text
      const url = /Listening on (http:\S+)/.exec(log)?.[1]
      if (url === undefined || answer !== undefined) return
      answer = fetch(new URL("/livez", url)).finally(() => child.kill("SIGTERM"))
      answer.then(({ status }) => status === 200 ? resolve() : reject(new Error(`/livez: ${status}`)), reject)
    })
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)))
  })

/** Starts the bundle in a folder that has nothing else. */
const startBundle = async (template: string, project: string, folder: string): Promise<void> => {
  cpSync(join(project, "dist"), folder, { recursive: true })
  if (template === "http" || template === "tasks") return probe(folder)
  const args = [join(folder, "main.cjs")]
  const output = execFileSync(process.execPath, args, { cwd: project, encoding: "utf8", input: `${initialize}\n` })
  const expected = template === "stdio" ? "\"serverInfo\"" : "example reserve"
  if (!output.includes(expected)) throw new Error(`${project}: ${JSON.stringify(output)} does not have ${expected}`)
}

const temporary = mkdtempSync(join(tmpdir(), "skein-created-"))
try {
  const [tarballs, bundles] = [join(temporary, "tarballs"), join(temporary, "bundles")]
  for (const folder of [tarballs, bundles]) mkdirSync(folder)
  const all = pack(tarballs)
  const creator = all.find((path) => path.includes("create-skein-"))
  const packages = all.filter((path) => path !== creator)
  for (const template of Object.keys(templates)) {
    for (const style of Object.keys(styles)) {
      const start = performance.now()
      const name = `${template}-${style}`
      const args = ["--template", template, "--style", style, "--no-install", "--no-git"]
      runNpm(
        temporary,
        "exec",
        "--yes",
        "--prefer-offline",
        `--package=${creator}`,
        "--",
        "create-skein",
        name,
        ...args
      )
      const project = join(temporary, name)
      runNpm(project, "install", "--no-save", "--prefer-offline", "--no-audit", "--no-fund", "--silent", ...packages)
      checkCopies(project)
      for (const script of ["check", "test", "build"]) runNpm(project, "run", "--silent", script)
      await startBundle(template, project, join(bundles, name))
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
