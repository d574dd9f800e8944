/**
 * The process as a command sees it. `nodeProcess.ts` provides it in a program, and tests provide their own.
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Colors } from "./colors.ts"

/** The version that `--version` prints, and that the commands report to servers. */
export const version = "0.2.0"

/** Output of a command: results go to stdout, everything else goes to stderr. */
export interface Console {
  /**
   * Writes to stdout, and waits until the text is written. On a terminal, characters that control it are escaped, except
   * the colors of a text that has them: its untrusted parts must be printable.
   */
  readonly print: (text: string, hasColors?: boolean) => Effect.Effect<void>
  /** Writes bytes to stdout as they are, and waits until they are written. */
  readonly printBytes?: ((bytes: Uint8Array) => Effect.Effect<void>) | undefined
  /** Whether stdout is a terminal. */
  readonly isTerminal?: boolean | undefined
  /** Writes a line to stderr. */
  readonly warn: (line: string) => void
  /**
   * Shows a text in the last line of the terminal, in the place of the one before; "" removes it. Undefined where stderr
   * is not a terminal.
   */
  readonly showStatus?: ((text: string) => void) | undefined
  /** The colors of stdout and of stderr. Undefined: none. */
  readonly colors?: { readonly out: Colors; readonly err: Colors } | undefined
}

/** A terminal with a user who reads and types. */
export interface Terminal {
  readonly writeLine: (line: string) => Effect.Effect<void>
  /** Shows the prompt and returns the line that was typed, or `undefined` when the input has ended. */
  readonly readLine: (prompt: string) => Effect.Effect<string | undefined>
}

/** A terminal that a command takes over. */
export interface Screen {
  /** Its present size, in characters. */
  readonly size: () => { readonly columns: number; readonly rows: number }
  /**
   * Takes the terminal over until the scope closes: shows an empty screen beside the present one, and passes on what is
   * typed, byte by byte.
   */
  readonly open: (on: {
    readonly input: (text: string) => void
    readonly resized: () => void
  }) => Effect.Effect<void, never, Scope.Scope>
  /** Writes to it as it is. */
  readonly draw: (text: string) => void
}

/** The process that runs a command. */
export class Process extends Context.Service<Process, {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly console: Console
  /** `undefined` when stdin is not a terminal. */
  readonly terminal: Terminal | undefined
  /** `undefined` when stdin or stdout is not a terminal. */
  readonly screen?: Screen | undefined
  /**
   * Leaves the process to a program with signals and an exit of its own, which this function starts: a server. Undefined
   * where the command is not the only program of its process.
   */
  readonly handOver?: ((start: () => void) => Effect.Effect<never>) | undefined
}>()("@skein/cli/Process") {}

/**
 * Ends the process with this exit code. The report is written to stderr; without one, the command has written it
 * already.
 */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly exitCode: number
  readonly report?: string | undefined
}> {}

/** The failure of a command, with a report, which is escaped when it is written. */
export const failed = (exitCode: number, report: string): CommandFailed => new CommandFailed({ exitCode, report })

/** The texts of a log message, without values such as causes. */
export const logLine = (message: unknown): string =>
  (Array.isArray(message) ? message : [message]).filter((part) => typeof part === "string").join(": ")

/** Runs a function that rejects with {@link CommandFailed}. Any other rejection is a defect. */
export const promised = <A>(run: () => Promise<A>): Effect.Effect<A, CommandFailed> =>
  Effect.flatten(Effect.promise(() =>
    run().then(
      (value): Effect.Effect<A, CommandFailed> => Effect.succeed(value),
      (cause: unknown) => cause instanceof CommandFailed ? Effect.fail(cause) : Effect.die(cause)
    )
  ))
