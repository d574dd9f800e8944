/**
 * Runs programs as processes of the runtime that runs the test: Node, or in `npm run runtimes` Bun and Deno too, with the packed
 * package `skein`. So it imports no other package.
 */
import { type ChildProcess, fork, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"

const root = join(import.meta.dirname, "../..")

/** Whether the packages are those of this repository, which have no build. */
const isFromSource = existsSync(join(root, "packages/skein/src"))

/** The programs that `npm run runtimes` leaves out, because they use other packages. */
export const fromSource = <A>(...programs: ReadonlyArray<A>): ReadonlyArray<A> => isFromSource ? programs : []

const condition = "--conditions=@skein/source"

/** The arguments of the runtime before the path of a program. */
const flags = "Deno" in globalThis ? ["run", "-A"] : "Bun" in globalThis || !isFromSource ? [] : [condition]

const preload = "Deno" in globalThis || "Bun" in globalThis ? "--preload" : "--import"

/** A command that starts a program. */
export interface Command {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

/** The command that runs a program, by its absolute path or that in this repository. */
export const program = (path: string, ...args: ReadonlyArray<string>): Command => ({
  command: process.execPath,
  args: [...flags, resolve(root, path), ...args]
})

export interface Running {
  readonly url: string
  readonly child: ChildProcess
}

/** The working directory and the environment of a program. */
export interface Place {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a program that listens on a port. `path` is absolute, or that of a file in `programs` without `.ts`. */
export const launch = (path: string, { cwd, env }: Place = {}): ChildProcess =>
  fork(path.endsWith(".ts") ? path : join(root, "docs/programs", `${path}.ts`), {
    cwd,
    env: { ...process.env, ...env },
    execArgv: [...flags, preload, join(import.meta.dirname, "anyPort.ts")],
    stdio: ["ignore", "ignore", "pipe", "ipc"]
  })

/** Starts a program, and waits until it listens. */
export const start = (path: string, place?: Place): Promise<Running> => {
  const child = launch(path, place)
  let output = ""
  child.stderr!.on("data", (chunk) => void (output += String(chunk)))
  return new Promise((resolve, reject) => {
    child.once("message", (port) => resolve({ url: `http://localhost:${String(port)}/mcp`, child }))
    child.once("exit", (code) => reject(new Error(`${path} exited with ${String(code)}: ${output}`)))
  })
}

/** Uses a program that listens, and kills it. */
export const whileStarted = async (
  path: string,
  use: (url: string) => Promise<void>,
  place?: Place
): Promise<void> => {
  const { child, url } = await start(path, place)
  try {
    await use(url)
  } finally {
    child.kill("SIGKILL")
  }
}

/** The result of a command line. */
export interface Ran {
  readonly code: unknown
  /** Stdout and stderr, with `~/<name of the folder>` in the place of the path of the folder. */
  readonly output: string
}

/** A folder in which a reader of a page works. */
export interface Project {
  readonly folder: string
  /** Runs a command line in the folder. `skein` is the command of the package, and `node` the runtime. */
  readonly run: (line: string, options?: { readonly input?: string; readonly env?: Place["env"] }) => Promise<Ran>
  readonly remove: () => void
}

/** Writes the files of a project, whose packages are those of this repository. */
export const project = (name: string, files: Iterable<readonly [path: string, text: string]>): Project => {
  const outer = mkdtempSync(join(tmpdir(), "skein-docs-"))
  const [bin, folder] = [join(outer, "bin"), join(outer, name)]
  mkdirSync(bin)
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  const { args: skein } = program(
    isFromSource ? "packages/cli/src/bin/skein.ts" : "node_modules/skein/dist/bin/skein.js"
  )
  for (const [name, args] of [["skein", skein], ["node", flags]] as const) {
    const words = [process.execPath, ...args].map((word) => `"${word}"`).join(" ")
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 })
  }
  const run: Project["run"] = async (line, { env, input = "" } = {}) => {
    const child = spawn("sh", ["-c", `exec 2>&1; exec ${line}`], {
      cwd: folder,
      env: {
        ...isFromSource ? { NODE_OPTIONS: condition } : {},
        HOME: folder,
        NO_COLOR: "1",
        PATH: [bin, dirname(process.execPath), process.env["PATH"]].join(delimiter),
        ...env
      },
      stdio: ["pipe", "pipe", "inherit"]
    })
    child.stdin.on("error", () => {}).end(input)
    let output = ""
    let isStopped = false
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text
      // A server over HTTP has no end of its own, and neither has a program that is restarted.
      if (isStopped || (!/Listening on/.test(output) && !line.includes("--restart-only"))) return
      isStopped = true
      // After `child.kill` Deno reports the signal in the place of the exit code.
      process.kill(child.pid!, "SIGINT")
    })
    const [code] = await once(child, "close")
    return { code, output: output.trimEnd().replaceAll(folder, `~/${name}`) }
  }
  return { folder, run, remove: () => rmSync(outer, { recursive: true, force: true }) }
}
