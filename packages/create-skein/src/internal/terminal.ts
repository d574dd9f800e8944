/**
 * Questions on a terminal.
 */
import { createInterface } from "node:readline/promises"
import type { Ask } from "./commandLine.ts"

/** The user has ended the input, or interrupted it, instead of answering. */
export class Interrupted extends Error {}

/** A terminal. Close it, or the process does not end. */
export interface Terminal {
  readonly ask: Ask
  readonly close: () => void
}

/** Asks on stdin and stdout. */
export const openTerminal = (): Terminal => {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  const closed = new Promise<never>((_, reject) => lines.once("close", () => reject(new Interrupted())))
  // Closing after the last question is not an interruption.
  closed.catch(() => {})
  lines.on("SIGINT", () => lines.close())
  return {
    ask: async (question, initial, check) => {
      while (true) {
        const text = (await Promise.race([lines.question(`${question} [${initial}]: `), closed])).trim()
        const checked = check(text === "" ? initial : text)
        if ("value" in checked) return checked.value
        process.stdout.write(`${checked.problem}\n`)
      }
    },
    close: () => lines.close()
  }
}
