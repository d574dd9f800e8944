/**
 * This program: its command line, for a server that is a process of its own, and the user who runs it.
 */
import { existsSync } from "node:fs"
import { hostname, userInfo } from "node:os"
import { extname, join } from "node:path"

/** The program, beside this code: all of it is in one folder, `dist/code`, in the package `skein`. */
const programFile = (): string => {
  // The extension of this file: a program from source has no compiled files.
  const name = `bin/skein${extname(import.meta.filename)}`
  const [own, bundled] = [join(import.meta.dirname, "../..", name), join(import.meta.dirname, "..", name)]
  return existsSync(own) ? own : bundled
}

/** The command line that serves a module with `skein run`. */
export const runCommandLine = ({ dotenv, exportName, module }: {
  readonly module: string
  readonly exportName: string | undefined
  readonly dotenv?: string | undefined
}): { readonly command: string; readonly args: ReadonlyArray<string> } => {
  return {
    command: process.execPath,
    args: [
      ...process.execArgv,
      programFile(),
      "run",
      ...exportName === undefined ? [] : [`--export=${exportName}`],
      ...dotenv === undefined ? [] : [`--dotenv=${dotenv}`],
      module
    ]
  }
}

/** The words that start `skein dev` again, without the inspector. */
export const ownCommand = (): ReadonlyArray<string> => [
  process.execPath,
  ...process.execArgv,
  ...process.argv.slice(1).filter((word) => word !== "--inspector" && !word.startsWith("--inspector-version="))
]

/** The name of the user and of the machine: `ada@bakery`. A container may have no name for its user. */
export const operatorName = (): string => {
  let user: string
  try {
    user = userInfo().username
  } catch {
    user = String(process.getuid?.() ?? "unknown")
  }
  return `${user}@${hostname()}`
}
