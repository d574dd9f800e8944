/**
 * The terminal of this process. It reads from stdin and writes to stderr: on a stdio server, stdout carries protocol
 * messages only, and stdin is not a terminal.
 */
import * as Effect from "effect/Effect"
import { createInterface } from "node:readline"
import { SignInError } from "../grants/SignIn.ts"

/** A terminal with a person who reads and types. */
export interface Terminal {
  /** Writes a line, without the line break at its end. */
  readonly writeLine: (line: string) => Effect.Effect<void>
  /** Shows the prompt and returns the line that was typed, or `undefined` when the input has ended. */
  readonly readLine: (prompt: string) => Effect.Effect<string | undefined, SignInError>
}

/**
 * Shows the prompt on stderr and returns the line that was typed, or `undefined` when the input has ended. stdin must be a
 * terminal.
 */
export const readLine = (prompt: string): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    const lines = createInterface({ input: process.stdin, output: process.stderr })
    let answer: string | undefined
    // The terminal sends no signal while a line is edited.
    lines.on("SIGINT", () => void process.kill(process.pid, "SIGINT"))
    lines.question(prompt, (line) => {
      answer = line
      lines.close()
    })
    // Closing releases stdin, which must happen before the next prompt.
    lines.on("close", () => resume(Effect.succeed(answer)))
    return Effect.sync(() => lines.close())
  })

/** The terminal of this process. Reading fails if stdin is not a terminal: it can carry messages of a protocol. */
export const terminal: Terminal = {
  writeLine: (line) => Effect.sync(() => void process.stderr.write(`${line}\n`)),
  readLine: (prompt) =>
    Effect.suspend(() => {
      if (process.stdin.isTTY) return readLine(prompt)
      const message =
        "There is no terminal to paste the answer of a sign-in on: stdin is not a terminal. Sign in with " +
        "another program that shares the token store, or use Loopback."
      return Effect.fail(new SignInError({ message }))
    })
}
