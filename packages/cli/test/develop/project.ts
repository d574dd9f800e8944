/** Projects of a user in a temporary folder, and `skein` as a process in them. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "../../../..")

/** The program, as the arguments of Node. */
export const program: ReadonlyArray<string> = [
  "--conditions=@skein/source",
  join(root, "packages/cli/src/bin/skein.ts")
]

/** A project with the packages of this repository. */
export interface Project {
  readonly folder: string
  readonly write: (file: string, text: string) => Promise<void>
  readonly remove: () => Promise<void>
}

/** Creates a project with these files. */
export const makeProject = async (files: Readonly<Record<string, string>>): Promise<Project> => {
  const folder = await mkdtemp(join(tmpdir(), "skein-develop-"))
  const write = (file: string, text: string): Promise<void> => writeFile(join(folder, file), text)
  await symlink(join(root, "node_modules"), join(folder, "node_modules"))
  await write("package.json", JSON.stringify({ name: "project", type: "module" }))
  for (const [file, text] of Object.entries(files)) await write(file, text)
  return { folder, write, remove: () => rm(folder, { recursive: true, force: true }) }
}

/** A server with the tool `greet`, which answers with this text. */
export const greeting = (answer: string, more = ""): string => `
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
const greet = Tool.make("greet", { description: "Greets." })
export const Server = McpServer.layer(
  { name: "greeter", version: "1.0.0" },
  Tool.layer(greet, () => Effect.succeed(${JSON.stringify(answer)}))
)
${more}`

/** A process of `skein`. */
export interface Running {
  readonly child: ChildProcess
  readonly out: () => string
  readonly err: () => string
  /** The exit code or the signal, once stdout and stderr are closed in all processes. */
  readonly ended: Promise<number | string>
  /** Waits until stderr contains a text. */
  readonly until: (text: string | RegExp) => Promise<void>
}

/** Starts a command in a project. Its stdin is a pipe. */
export const start = (
  { folder }: Pick<Project, "folder">,
  [command, ...args]: readonly [string, ...ReadonlyArray<string>],
  env: Readonly<Record<string, string>> = {}
): Running => {
  // The conditions and the debugger of the test runner are not for its children.
  const { NODE_OPTIONS: _, ...inherited } = process.env
  const child = spawn(command, args, { cwd: folder, env: { ...inherited, ...env }, stdio: ["pipe", "pipe", "pipe"] })
  let [out, err] = ["", ""]
  child.stdin.on("error", () => {})
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
  const ended = once(child, "close").then(([code, signal]) => code ?? signal)
  const has = (text: string | RegExp): boolean => typeof text === "string" ? err.includes(text) : text.test(err)
  const until = async (text: string | RegExp): Promise<void> => {
    let isOver = false
    void ended.then(() => void (isOver = true))
    while (!has(text)) {
      if (isOver) throw new Error(`the process ended without ${String(text)}: ${err}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  return { child, out: () => out, err: () => err, ended, until }
}

/** Starts `skein` in a project. */
export const skein = (
  project: Pick<Project, "folder">,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
): Running => start(project, [process.execPath, ...program, ...args], env)

/** Runs `skein` to its end, with an empty stdin. */
export const run = async (
  project: Pick<Project, "folder">,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
): Promise<{ readonly code: number | string; readonly out: string; readonly err: string }> => {
  const { child, ended, err, out } = skein(project, args, env)
  child.stdin!.end()
  return { code: await ended, out: out(), err: err() }
}

/** A command of the shell as one word, as the commands of `skein` take it. */
export const asWord = (words: ReadonlyArray<string>): string => words.map((word) => `'${word}'`).join(" ")

/** Whether a process runs. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
