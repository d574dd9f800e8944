/**
 * The processes of a faulty server over stdio. The program is a file beside this one, also where both are bundled.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { extname, join } from "node:path"
import type { Scenario } from "../Scenario.ts"
import { callCountOf, type ToolCall } from "./protocolHandler.ts"

/** A faulty server over stdio, which can be started as a process any number of times. */
export interface StdioProgram {
  /** The executable: this Node. */
  readonly command: string
  /** The arguments of the executable. */
  readonly args: ReadonlyArray<string>
  /** The tool calls that all processes have carried out, in order. */
  readonly calls: Effect.Effect<ReadonlyArray<ToolCall>>
  /** How often the call with that key was carried out. */
  readonly callCount: (key: string) => Effect.Effect<number>
  /** How often the program was started. */
  readonly startCount: Effect.Effect<number>
}

/** Prepares the program. The public module has the documentation. */
export const stdio = (scenario: Scenario): Effect.Effect<StdioProgram, never, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-faulty-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    const journal = join(folder, "journal")
    // It has the extension of this file: a program from source has no compiled files.
    const program = join(import.meta.dirname, `stdioProgram${extname(import.meta.filename)}`)
    const lines = Effect.sync(() => readJournal(journal))
    const calls = Effect.map(lines, (all) => all.flatMap((line) => "tool" in line ? [line] : []))
    return {
      command: process.execPath,
      args: [program, JSON.stringify(scenario), journal],
      calls,
      callCount: (key) => Effect.map(calls, (all) => callCountOf(all, key)),
      startCount: Effect.map(lines, (all) => all.filter((line) => "pid" in line).length)
    }
  })

const readJournal = (journal: string): ReadonlyArray<ToolCall | { readonly pid: number }> => {
  try {
    return readFileSync(journal, "utf8").split("\n").flatMap((line) => line === "" ? [] : [JSON.parse(line)])
  } catch {
    // No process was started yet.
    return []
  }
}
