/**
 * Finds the program of a command on Windows. `CreateProcess` searches `PATH` for `.exe` files only and cannot start
 * scripts, but `npx`, `npm` and `uvx` may be scripts (`npx.cmd`), and configurations name them as on other systems.
 *
 * A script is started by `cmd.exe`, whose command line is written so that each argument reaches the program unchanged and
 * is never a command: the variables, separators and redirections in it are escaped.
 */
import * as Text from "@skein/protocol/Text"

/** The parts of Windows that the search depends on. Variables are found in any case, as Windows finds them. */
export interface WindowsHost {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working directory of the process. */
  readonly cwd: string
  readonly isFile: (path: string) => boolean
  /** The first line of a file; empty if it cannot be read. */
  readonly firstLine: (path: string) => string
}

/** The program to start. `isVerbatim`: the arguments are a command line, and must not be quoted again. */
export interface WindowsCommand {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly isVerbatim: boolean
}

// Of several variables whose names differ in case only, Node passes on the first one in this order.
const variable = ({ env }: WindowsHost, name: string): string | undefined =>
  env[Object.keys(env).sort().find((key) => key.toUpperCase() === name) ?? name]

const isAbsolute = (path: string): boolean => /^(?:[a-z]:)?[\\/]/i.test(path)

const join = (directory: string, name: string): string =>
  directory === "" ? name : `${directory.replace(/[\\/]+$/, "")}\\${name}`

/** The path of the file that a command names, if there is one. The extensions of `PATHEXT` are tried in their order. */
const find = (command: string, host: WindowsHost): string | undefined => {
  const extensions = (variable(host, "PATHEXT") || ".COM;.EXE;.BAT;.CMD").split(";").filter((one) => one !== "")
  const name = command.replaceAll("/", "\\")
  // A file without an extension is a script of another system: npm puts `npx` beside `npx.cmd`.
  const hasExtension = /\.[^\\]*$/.test(name)
  const names = hasExtension ? [name, ...extensions.map((one) => name + one)] : extensions.map((one) => name + one)
  const directories = isAbsolute(name)
    ? [""]
    : name.includes("\\")
    ? [host.cwd]
    // Unlike `cmd.exe`, this does not search the working directory: a file there must not replace a program.
    : (variable(host, "PATH") ?? "").split(";").map((one) => one.replace(/^"(.*)"$/, "$1")).filter((one) => one !== "")
  for (const directory of directories) {
    for (const candidate of names) {
      const path = join(directory, candidate)
      if (host.isFile(path)) return path
    }
  }
  return undefined
}

const special = /[()\][%!^"`<>&|;, *?]/g

/** Escapes a text for `cmd.exe`, which removes one caret from each escaped character. */
const escapeForCmd = (text: string): string => text.replace(special, "^$&")

/** Quotes an argument as programs read it: a backslash counts as one, except before a quotation mark. */
const quote = (arg: string): string => `"${arg.replace(/(\\*)"/g, "$1$1\\\"").replace(/(\\+)$/, "$1$1")}"`

/**
 * Scripts pass their arguments on (`%*`), and `cmd.exe` reads them a second time. Inside quotation marks nothing is
 * special then, so only an argument that itself has quotation marks is escaped twice.
 */
const argument = (arg: string): string => {
  const once = escapeForCmd(quote(arg))
  return arg.includes("\"") ? escapeForCmd(once) : once
}

/** The interpreter in the first line of a script, such as `node` in `#!/usr/bin/env node`, and its arguments. */
const interpreterIn = (firstLine: string): ReadonlyArray<string> | undefined => {
  const [path, ...args] = /^#!\s*(.*)$/.exec(firstLine)?.[1]!.trim().split(/\s+/) ?? [""]
  const name = path!.slice(path!.lastIndexOf("/") + 1)
  const words = name === "env" ? args.slice(args[0] === "-S" ? 1 : 0) : [name, ...args]
  return words[0] === undefined || words[0] === "" ? undefined : words
}

/**
 * Finds the program of a command. A file that is neither a program nor a script of Windows is run by the interpreter that
 * its first line names. Returns a message if the command cannot be started: a line break would end the command
 * line of `cmd.exe`. A command that is not found is returned as it is, so that starting it fails as on other systems.
 *
 * @example
 * windowsCommand("npx", ["-y", "a-server"], host) // cmd.exe /d /s /c "..."
 */
export const windowsCommand = (
  command: string,
  args: ReadonlyArray<string>,
  host: WindowsHost
): WindowsCommand | string => {
  const file = find(command, host)
  if (file === undefined || /\.(?:com|exe)$/i.test(file)) return { file: file ?? command, args, isVerbatim: false }
  if (!/\.(?:cmd|bat)$/i.test(file)) {
    const [interpreter, ...before] = interpreterIn(host.firstLine(file)) ?? []
    const program = interpreter === undefined ? undefined : find(interpreter, host)
    // An interpreter that is a script itself would need a second command line.
    return program === undefined || !/\.(?:com|exe)$/i.test(program)
      ? { file, args, isVerbatim: false }
      : { file: program, args: [...before, file, ...args], isVerbatim: false }
  }
  const broken = [file, ...args].find((text) => /[\r\n\0]/.test(text))
  if (broken !== undefined) {
    return `a script takes no argument with a line break: ${Text.quote(broken, 64)}`
  }
  const line = [escapeForCmd(file), ...args.map(argument)].join(" ")
  return {
    file: variable(host, "COMSPEC") || "cmd.exe",
    // `/s` removes the outer quotation marks and nothing else; `/d` skips the commands of the registry.
    args: ["/d", "/s", "/c", `"${line}"`],
    isVerbatim: true
  }
}
