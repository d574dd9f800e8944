/** A process observed from outside: its input lines, its output lines, and its exit. */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

export const fixture = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))

/** The lines of a stream, and a way to wait for one. */
export class Lines {
  readonly all: Array<string> = []
  readonly #waiters = new Set<() => void>()
  constructor(stream: NodeJS.ReadableStream) {
    createInterface({ input: stream }).on("line", (line) => {
      this.all.push(line)
      for (const waiter of [...this.#waiters]) waiter()
    })
  }
  /** Resolves with the first line, received or to come, that contains the text. */
  until(text: string): Promise<string> {
    return this.when(() => this.all.find((line) => line.includes(text)))
  }
  when<A>(f: () => A | undefined): Promise<A> {
    return new Promise((resolve) => {
      const look = () => {
        const found = f()
        if (found === undefined) return
        this.#waiters.delete(look)
        resolve(found)
      }
      this.#waiters.add(look)
      look()
    })
  }
}

export interface Child {
  readonly process: ChildProcess
  readonly stdout: Lines
  readonly stderr: Lines
  readonly exit: Promise<number | string>
  readonly send: (id: number, method: string) => void
  /** The messages on stdout. Every line must be one. */
  readonly messages: () => Array<{ id?: number | string; result?: { method?: string }; error?: { code: number } }>
}

/** Runs a fixture with the Node of this process. `readStdout: false` leaves its stdout unread. */
export const run = (name: string, args: ReadonlyArray<string> = [], readStdout = true): Child => {
  const process_ = spawn(process.execPath, ["--conditions=@skein/source", fixture(name), ...args], {
    stdio: ["pipe", "pipe", "pipe"]
  })
  process_.stdin.on("error", () => {})
  const stdout = new Lines(readStdout ? process_.stdout : process_.stderr)
  const stderr = new Lines(process_.stderr)
  return {
    process: process_,
    stdout,
    stderr,
    exit: new Promise((resolve) => process_.once("close", (code, signal) => resolve(code ?? signal!))),
    send: (id, method) => void process_.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method })}\n`),
    messages: () => stdout.all.map((line) => JSON.parse(line))
  }
}
