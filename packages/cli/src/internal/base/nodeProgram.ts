/**
 * This program as a command line, for a server that is a process of its own.
 */
import { basename, join } from "node:path"

/** The command line that serves a module with `skein run`. */
export const runCommandLine = ({ dotenv, exportName, module }: {
  readonly module: string
  readonly exportName: string | undefined
  readonly dotenv?: string | undefined
}): { readonly command: string; readonly args: ReadonlyArray<string> } => {
  const folder = join(import.meta.dirname, "../../bin")
  // The extension of this file: a program from source has no compiled files.
  const program = join(folder, `skein${basename(import.meta.filename).endsWith(".ts") ? ".ts" : ".js"}`)
  return {
    command: process.execPath,
    args: [
      ...process.execArgv,
      program,
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
