/**
 * Creates projects: servers, and hosts of servers. `npm create skein` runs it.
 *
 * @example
 * await CreateSkein.create({ folder: "my-server", template: "http", style: "async" })
 */
import { spawn } from "node:child_process"
import { mkdir, readdir, writeFile } from "node:fs/promises"
import { dirname, join, relative, resolve } from "node:path"
import * as choices from "./internal/choices.ts"
import { type Answers, complete, parse, usage, UsageError } from "./internal/commandLine.ts"
import { filesOf, readVersion } from "./internal/files.ts"
import { Interrupted, openTerminal } from "./internal/terminal.ts"

/** The kind of the program. */
export type Template = choices.Template

/** How the handlers are written: with effects and Effect schemas, or with async functions and zod. */
export type Style = choices.Style

/** The package manager whose commands the project names. */
export type PackageManager = choices.PackageManager

/** The folder, the template and the tools of a new project. */
export interface Options {
  /** The folder. It must be new or empty, except for a `.git`. */
  readonly folder: string
  /** The name of the package: the name of the folder by default. */
  readonly name?: string | undefined
  readonly template: Template
  readonly style: Style
  /** `npm` by default. */
  readonly packageManager?: PackageManager | undefined
}

/** Why a project cannot be created. The message is for the user. */
export class CreateError extends Error {
  override readonly name = "CreateError"
}

const entriesOf = async (folder: string): Promise<ReadonlyArray<string>> => {
  try {
    return await readdir(folder)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === "ENOENT") return []
    throw new CreateError(code === "ENOTDIR" ? `${folder} is a file` : `Cannot read ${folder}: ${message}`)
  }
}

/**
 * Writes the files of a project, and returns their paths in its folder. It neither installs the dependencies nor
 * creates a repository.
 *
 * Rejects with `CreateError` if the name is not the name of a package, if the folder is not empty, or if a file cannot
 * be written.
 *
 * @example
 * const paths = await CreateSkein.create({ folder: "my-host", template: "client", style: "effect" })
 */
export const create = async (options: Options): Promise<ReadonlyArray<string>> => {
  const { folder, packageManager = "npm", style, template } = options
  const name = options.name ?? choices.nameOf(resolve(folder))
  const problem = choices.nameProblem(name)
  if (problem !== undefined) throw new CreateError(problem)
  const present = (await entriesOf(folder)).filter((entry) => entry !== ".git")
  if (present.length > 0) {
    const some = present.slice(0, 3).join(", ")
    throw new CreateError(`The folder ${folder} is not empty (${some}): choose a new one, or remove its files`)
  }
  const files = await filesOf({ name, template, style, packageManager })
  try {
    for (const [path, text] of files) {
      const to = join(folder, path)
      await mkdir(dirname(to), { recursive: true })
      // Never replaces a file that appeared meanwhile.
      await writeFile(to, text, { flag: "wx" })
    }
  } catch (error) {
    throw new CreateError(`Cannot write to ${folder}: ${(error as Error).message}`)
  }
  return Array.from(files.keys()).toSorted()
}

/** Runs a program in a folder, and returns its exit code, or `undefined` if it cannot be started. */
const run = (
  folder: string,
  command: string,
  args: ReadonlyArray<string>,
  stdio: "inherit" | "ignore"
): Promise<number | undefined> =>
  new Promise((done) => {
    // Package managers are scripts on Windows, which only a shell starts. The arguments are constants.
    const shell = process.platform === "win32"
    const child = spawn(command, args, { cwd: folder, stdio, shell })
    child.once("error", () => done(undefined))
    child.once("exit", (code, signal) => done(code ?? (signal === null ? 1 : 130)))
  })

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const createRepository = async (folder: string): Promise<void> => {
  if (await run(folder, "git", ["rev-parse", "--is-inside-work-tree"], "ignore") === 0) return
  const code = await run(folder, "git", ["init", "--quiet"], "ignore")
  if (code !== 0) say("git init has failed: the project has no repository")
}

const install = async (folder: string, packageManager: PackageManager): Promise<boolean> => {
  const { install: args } = choices.packageManagers[packageManager]
  say(`\nInstalling the dependencies: ${packageManager} ${args.join(" ")}`)
  const code = await run(folder, packageManager, args, "inherit")
  if (code === 0) return true
  const why = code === undefined ? "it cannot be started" : `exit code ${code}`
  process.stderr.write(`${packageManager} ${args.join(" ")} has failed: ${why}. Run it again in ${folder}\n`)
  return false
}

const nextSteps = ({ folder, packageManager }: Answers, isInstalled: boolean): string => {
  const { run } = choices.packageManagers[packageManager]
  const path = relative(process.cwd(), resolve(folder))
  const steps = [
    ...path === "" ? [] : [`cd ${/[^\w./\\-]/.test(path) ? JSON.stringify(path) : path}`],
    ...isInstalled ? [] : [`${packageManager} install`],
    `${run} test`,
    `${run} dev`
  ]
  return `\nNext:\n${steps.map((step) => `  ${step}`).join("\n")}\n\nREADME.md has the rest.`
}

const createFrom = async (argv: ReadonlyArray<string>): Promise<number> => {
  const line = parse(argv, process.env)
  if (line.help || line.version) {
    say(line.help ? usage.trimEnd() : await readVersion())
    return 0
  }
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY
  if (!isTerminal && !line.yes && (line.template === undefined || line.style === undefined)) {
    throw new UsageError("There is no terminal to ask on: pass --template and --style, or --yes for the defaults")
  }
  const terminal = isTerminal && !line.yes ? openTerminal() : undefined
  const manager = choices.packageManagerOf(process.env["npm_config_user_agent"])
  const answers = await complete(line, manager, terminal?.ask).finally(() => terminal?.close())
  const { folder, packageManager, style, template } = answers
  const files = await create(answers)
  say(`Created ${folder}: ${template}, ${style}, ${files.length} files`)
  if (line.git) await createRepository(folder)
  const isInstalled = line.install && await install(folder, packageManager)
  say(nextSteps(answers, isInstalled))
  return line.install && !isInstalled ? 1 : 0
}

/**
 * Runs the command line `create-skein`, and returns the exit code: 0 if the project is created, 1 if it cannot be
 * created or its dependencies cannot be installed, 2 if the command line is not valid, and 130 if the user interrupts a
 * question.
 *
 * @example
 * process.exitCode = await CreateSkein.main(["my-server", "--template", "stdio", "--style", "effect", "--no-install"])
 */
export const main = async (argv: ReadonlyArray<string>): Promise<number> => {
  try {
    return await createFrom(argv)
  } catch (error) {
    if (error instanceof Interrupted) {
      say("")
      return 130
    }
    if (!(error instanceof UsageError || error instanceof CreateError)) throw error
    const hint = error instanceof UsageError ? "\ncreate-skein --help lists the options." : ""
    process.stderr.write(`${error.message}${hint}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}
