/**
 * A command as a process of Node: its streams, its signals and its exit.
 */
import { printable } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as UserDirectories from "effect/persistence/UserDirectories"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { ansi, type Colors, hasColors, plain } from "./colors.ts"
import { fit } from "./columns.ts"
import { sanitize, sanitizeColored } from "./format.ts"
import { type CommandFailed, type Console, failed, Process, type Screen, type Terminal } from "./process.ts"

// How long the command may take to end after a signal, in milliseconds: the process of a server is given 2 seconds to
// end when its stdin closes, 2 after SIGTERM and 1 after SIGKILL.
const grace = 6_000

const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

const handled = ["SIGHUP", "SIGINT", "SIGTERM"] as const

/** The exit code after a defect: EX_SOFTWARE of sysexits(3). */
const defect = 70

/** The text in the last line of the terminal. */
let status = ""

/** Whether the person types in the last line. */
let isTyping = false

// Erases the line, and goes to its beginning.
const erased = "\r\u001b[2K"

const showStatus = (text: string): void => {
  if (isTyping || text === status) return
  // A terminal without a size has 0 columns.
  const columns = process.stderr.columns || 80
  status = text
  process.stderr.write(erased + fit(printable(text, columns), columns - 1).trimEnd())
}

/** Removes the status before another line is written. */
const withoutStatus = (): string => {
  if (status === "") return ""
  status = ""
  return erased
}

const warn = (line: string): void => void process.stderr.write(`${withoutStatus()}${line}\n`)

const colorsOf = ({ isTTY }: { readonly isTTY: boolean }): Colors => hasColors(process.env, isTTY) ? ansi : plain

const console: Console = {
  warn,
  colors: { out: colorsOf(process.stdout), err: colorsOf(process.stderr) },
  isTerminal: process.stdout.isTTY,
  ...process.stderr.isTTY ? { showStatus } : {},
  printBytes: (bytes) => Effect.callback<void>((resume) => void process.stdout.write(bytes, () => resume(Effect.void))),
  // Waits for the write, since output that is still buffered when a process exits is lost.
  print: (text, isColored = false) =>
    Effect.callback<void>((resume) => {
      const shown = !process.stdout.isTTY ? text : isColored ? sanitizeColored(text) : sanitize(text)
      process.stdout.write(shown.endsWith("\n") ? shown : `${shown}\n`, () => resume(Effect.void))
    })
}

const terminal: Terminal = {
  writeLine: (line) => Effect.sync(() => warn(line)),
  readLine: (prompt) =>
    Effect.flatMap(Effect.promise(() => import("@skein/auth/PasteSignIn")), ({ readLine }) =>
      Effect.suspend(() => {
        showStatus("")
        isTyping = true
        return Effect.ensuring(readLine(prompt), Effect.sync(() => void (isTyping = false)))
      }))
}

// The alternate screen, without a cursor; and back.
const enter = "\u001b[?1049h\u001b[?25l"
const leave = "\u001b[?25h\u001b[?1049l"

const screen: Screen = {
  size: () => ({ columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 }),
  draw: (text) => void process.stdout.write(text),
  open: ({ input, resized }) =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => {
        const onData = (chunk: Buffer): void => input(chunk.toString("utf8"))
        // A process that is killed by an exception must not leave the terminal in this state either.
        const restore = (): void => {
          process.stdin.setRawMode(false)
          process.stdout.write(leave)
        }
        process.stdin.setRawMode(true)
        process.stdin.on("data", onData).resume()
        process.stdout.on("resize", resized)
        process.on("exit", restore)
        process.stdout.write(enter)
        return { onData, restore }
      }),
      ({ onData, restore }) =>
        Effect.sync(() => {
          process.off("exit", restore)
          process.stdout.off("resize", resized)
          process.stdin.off("data", onData).pause()
          restore()
        })
    ))
}

/**
 * Runs a program as the only one of this process, and exits with the code that it returns. A signal interrupts the
 * program, which then has `grace` to end; a second signal exits at once.
 */
export const nodeMain = (name: string, program: Effect.Effect<number, never, Process>): void => {
  // The reader of the result may stop before its end, and a terminal may be gone.
  const onOutputError = (): void => process.exit(0)
  process.stdout.on("error", onOutputError)
  for (const stream of [process.stdin, process.stderr]) stream.on("error", () => {})
  const service = Process.of({
    env: process.env,
    console,
    terminal: process.stdin.isTTY ? terminal : undefined,
    screen: process.stdin.isTTY && process.stdout.isTTY ? screen : undefined,
    handOver: (start) =>
      Effect.andThen(
        Effect.sync(() => {
          for (const signal of handled) process.off(signal, onSignal)
          process.stdout.off("error", onOutputError)
          start()
        }),
        Effect.never
      )
  })
  const fiber = Effect.runFork(Effect.provideService(program, Process, service))
  let code: number | undefined
  const onSignal = (signal: keyof typeof signals): void => {
    if (code !== undefined) process.exit(signals[signal])
    code = signals[signal]
    setTimeout(() => process.exit(signals[signal]), grace).unref()
    fiber.interruptUnsafe()
  }
  for (const signal of handled) process.on(signal, onSignal)
  fiber.addObserver((exit) => {
    if (exit._tag === "Success") code ??= exit.value
    else if (Cause.hasInterruptsOnly(exit.cause)) code ??= signals.SIGINT
    else {
      code ??= defect
      warn(`${name}: ${sanitize(Cause.pretty(exit.cause))}`)
    }
    const status = code
    // Output that is still buffered when the process exits is lost.
    process.exitCode = status
    process.stderr.write("", () => process.exit(status))
  })
}

/** The folder of the tokens, which may not exist yet: `~/.local/share/skein/tokens` on Linux. */
export const tokenFolder: Effect.Effect<string, CommandFailed> = /* @__PURE__ */ Effect.suspend(() =>
  UserDirectories.make().data("skein").pipe(
    Effect.map((folder) => join(folder, "tokens")),
    Effect.mapError(({ message }) => failed(3, `The folder for tokens was not found: ${message}`))
  )
)

/** The folder of the tokens; undefined before the first sign-in on this computer. */
export const usedTokenFolder: Effect.Effect<string | undefined, CommandFailed> = /* @__PURE__ */ Effect.map(
  tokenFolder,
  (folder) => existsSync(folder) ? folder : undefined
)
