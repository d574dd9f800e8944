/**
 * The warnings that a server of Skein logs before it serves: a name that clients may refuse, or parts that it could not use and
 * has left out, such as an operation of an OpenAPI document. No message of the protocol has them, so that they are read from
 * its stderr.
 */
import { cut, withoutColors } from "@skein/protocol/Text"
import { quoteLine } from "../base/format.ts"

/** How many warnings are shown. */
const maxWarnings = 100

/** The longest line of stderr that is read, in characters. */
const maxLineChars = 16_384

// A line for people, as the default logger of Effect writes it. Further lines of a message have no time.
const warning = /^\[\d\d:\d\d:\d\d\.\d{3}\] (?:WARN|ERROR|FATAL) \(#\d+\): (.+)$/

/** Collects the warnings in the stderr of a server's process. */
export class ServerWarnings {
  #rest = ""
  readonly #found = new Set<string>()
  #more = 0

  /** Reads a part of stderr, which may end within a line. */
  readonly read = (text: string): void => {
    const lines = (this.#rest + text).split("\n")
    this.#rest = cut(lines.pop()!, maxLineChars)
    for (const line of lines) {
      const message = warning.exec(withoutColors(cut(line, maxLineChars)).trimEnd())?.[1]
      if (message === undefined) continue
      if (this.#found.size < maxWarnings) this.#found.add(quoteLine(message))
      else this.#more++
    }
  }

  /** The warnings so far, each once, in their order. */
  get list(): ReadonlyArray<string> {
    const more = this.#more === 0 ? [] : [`${this.#more} further warnings: use --verbose`]
    return [...this.#found, ...more]
  }
}

/** The warnings as text. */
export const warningsText = (warnings: ReadonlyArray<string>): string =>
  ["WARNINGS OF THE SERVER", ...warnings].join("\n")
