/**
 * The stdio transport: each connection starts a server as a child process, which ends with the connection's scope
 * (2026-07-28, basic/transports/stdio; 2025-11-25, basic/transports and basic/lifecycle, shutdown).
 *
 * **Gotchas.** On Windows a command is found by `PATH` and `PATHEXT`, and `cmd.exe` runs it if it is a script (`npx.cmd`,
 * for example), with escaped arguments. Windows has no process groups, so only the process itself is ended there.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(Stdio.transport({ command: "node", args: ["server.js"] }))
 *   return yield* client.listTools()
 * }).pipe(Effect.scoped)
 */
import { clip, printableLines, withoutColors } from "@skein/protocol/Text"
import type { Connection, End, Receiver, Transport } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import * as NodeStreams from "@skein/runtime/NodeStreams"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { connectionLost } from "./internal/base/errors.ts"
import { FixedBounds } from "./internal/base/fixedBounds.ts"
import { allowedEnv, environment, type ExitStatus, type ServerProcess, start } from "./internal/stdio/process.ts"

export type { ExitStatus }

/** The names of the environment variables that a server inherits by default: paths, the user, the language. */
export const defaultEnv: ReadonlyArray<string> = allowedEnv

/** The command that starts a server, and the bounds of the connection to it. */
export interface Options {
  /** The program: a path, or a name that is looked up in `PATH`. No shell interprets it. */
  readonly command: string
  /** The arguments: none by default. */
  readonly args?: ReadonlyArray<string> | undefined
  /** Environment variables in addition to those of `defaultEnv`. A variable that is `undefined` is removed. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Whether the server inherits the whole environment of this process instead of `defaultEnv`: false by default. */
  readonly inheritEnv?: boolean | undefined
  /** The working directory: that of this process by default. */
  readonly cwd?: string | URL | undefined
  /**
   * Where the server's stderr goes.
   *
   * - `inherit` (the default): to the stderr of this process.
   * - `ignore`: nowhere.
   * - `capture`: into memory. The last 8 Ki characters are part of the error with which a failed server ends.
   * - `forward`: to the stderr of this process, and into memory. The server does not see a terminal.
   * - A function: receives the text as it arrives, which is captured as well. An error that it throws is an uncaught
   *   exception.
   */
  readonly stderr?: "inherit" | "ignore" | "capture" | "forward" | ((text: string) => void) | undefined
  /**
   * How long the server may take to exit after its stdin was closed: 2 seconds by default. Then it gets SIGTERM, and
   * after the same time again SIGKILL. Raise it for a server that saves its state when it exits. Lower it where a parent
   * process kills this one soon.
   */
  readonly shutdownTimeout?: Duration.Input | undefined
  /**
   * The longest line that is read, in bytes: 4 MiB by default. A longer line is skipped and received as `Invalid`. Raise
   * it for a server that sends large files.
   */
  readonly maxLineBytes?: number | undefined
}

/**
 * How long the connection stays open after the first sign of the server's end (it exits, or closes stdin or stdout) when
 * the other signs do not follow, in milliseconds. The server's last messages are read in this time.
 */
const settleTimeout = 500

// How many characters of stderr, and of each of its lines, the message of an error quotes. The error contains the whole
// captured text.
const maxExcerpt = 1024
const maxExcerptLine = 256

const isFrame = (line: string | undefined): boolean => line !== undefined && /^\s+at /.test(line)

/**
 * The last lines of stderr, without colors: some compilers color each character of a message. In a long text each stack
 * keeps its first frame only, since the message of the error is above the stack.
 */
const excerptOf = (stderr: string): string => {
  const text = printableLines(withoutColors(stderr).trim(), Infinity)
  if (text.length <= maxExcerpt) return text
  const lines = text.split("\n")
    .filter((line, at, all) => !isFrame(line) || !isFrame(all[at - 1]))
    .map((line) => clip(line, maxExcerptLine))
  let length = 0
  const first = lines.findLastIndex((line) => (length += line.length + 1) > maxExcerpt) + 1
  return lines.slice(first).join("\n")
}

/**
 * The server process exited with a code other than 0, or was ended by a signal. It is the `cause` of a
 * `TransportError`.
 */
export class ServerExited extends Data.TaggedError("ServerExited")<{
  readonly pid: number
  readonly code: number | undefined
  readonly signal: string | undefined
  /** The captured end of its stderr. */
  readonly stderr: string
}> {
  override get message(): string {
    const how = this.signal === undefined ? `exited with code ${this.code}` : `was killed by ${this.signal}`
    const last = excerptOf(this.stderr)
    return `The server ${how}${last === "" ? "" : `; the end of its stderr: ${last}`}`
  }
}

const tailOf = (text: string, maxChars: number): string => text.slice(Math.max(0, text.length - maxChars))

/** A connection to a server that is a child process. */
export interface StdioConnection extends Connection {
  /** The process id of the server. Except on Windows it is also the id of its process group. */
  readonly pid: number
  /** Waits until the process has exited. Other processes of its group may still run. */
  readonly exited: Effect.Effect<ExitStatus>
  /** The captured end of the server's stderr. */
  readonly stderr: () => string
}

/** A transport that starts one process for each connection. */
export interface StdioTransport extends Transport {
  readonly connect: Effect.Effect<StdioConnection, TransportError, Scope.Scope>
}

/** The settings of a connection, with durations in milliseconds. */
interface Settings {
  readonly shutdownTimeout: number
  readonly maxStderrChars: number
  readonly onStderr: ((text: string) => void) | undefined
  readonly inheritsStderr: boolean
}

const forward = (text: string): void => void process.stderr.write(text)

class ChildConnection implements StdioConnection {
  readonly pid: number
  readonly exited: Effect.Effect<ExitStatus>
  readonly drained: Effect.Effect<void>
  readonly #process: ServerProcess
  readonly #inner: Connection
  readonly #settings: Settings
  // Runs an effect as a fiber in the connection's scope.
  readonly #run: (effect: Effect.Effect<void>) => void
  #receiver: Receiver | undefined
  #end: End | undefined
  #tail = ""
  #stderrOpen: boolean
  #stdoutOpen = true
  #stdinBroken = false
  #settling = false
  #overdue = false
  #closing = false

  constructor(
    process: ServerProcess,
    settings: Settings,
    run: (effect: Effect.Effect<void>) => void,
    inner: (broken: () => void) => Connection
  ) {
    this.pid = process.pid
    this.exited = process.exited
    this.#process = process
    this.#settings = settings
    this.#run = run
    this.#inner = inner(() => {
      this.#stdinBroken = true
      this.#settle()
    })
    this.drained = this.#inner.drained
    this.#stderrOpen = process.stderr !== null
    if (process.stderr !== null) {
      process.stderr.setEncoding("utf8")
      process.stderr.on("data", this.#onStderr)
      process.stderr.on("close", this.#onStderrClose)
      process.stderr.on("error", () => {})
    }
    run(Effect.flatMap(process.exited, () =>
      Effect.suspend(() => {
        this.#settle()
        // Ends the rest of the group, whose leader has exited. `close` does that itself.
        return this.#closing || process.isGone ? Effect.void : process.end(settings.shutdownTimeout)
      })))
  }

  readonly stderr = (): string => tailOf(this.#tail, this.#settings.maxStderrChars)

  open(receiver: Receiver): void {
    if (this.#end !== undefined) return receiver.end(this.#end)
    this.#receiver = receiver
    this.#inner.open({
      message: (message, origin) => receiver.message(message, origin),
      end: (end) => {
        this.#stdoutOpen = false
        if (end._tag === "ClosedByPeer") this.#settle()
        else this.#finish(end)
      }
    })
    if (!this.#overdue) return
    this.#overdue = false
    this.#settle()
  }

  send(message: Parameters<Connection["send"]>[0]): boolean {
    return this.#inner.send(message)
  }

  get isOutputFull(): boolean | undefined {
    return this.#inner.isOutputFull
  }

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#closing = true
    return Effect.andThen(
      this.#inner.close,
      Effect.andThen(this.#process.end(this.#settings.shutdownTimeout), Effect.sync(() => this.#process.release()))
    )
  })

  readonly #onStderr = (text: string): void => {
    // Cut at twice the bound, so that each character is copied once: a server may write them one by one.
    const { maxStderrChars } = this.#settings
    const tail = this.#tail + text
    this.#tail = tail.length > 2 * maxStderrChars ? tailOf(tail, maxStderrChars) : tail
    this.#settings.onStderr?.(text)
  }

  readonly #onStderrClose = (): void => {
    this.#stderrOpen = false
    if (this.#settling) this.#settle()
  }

  // The signs of a server's end come in any order. Some may never come: a grandchild can hold stdout open.
  #settle(): void {
    if (this.#end !== undefined) return
    if (this.#process.status !== undefined && !this.#stdoutOpen && !this.#stderrOpen) return this.#over()
    if (this.#settling) return
    this.#settling = true
    this.#run(Effect.andThen(
      Effect.sleep(settleTimeout),
      Effect.sync(() => {
        if (this.#end !== undefined) return
        // Messages that the receiver has not taken yet must not be lost: the end waits for `open`.
        this.#overdue = this.#stdoutOpen && this.#receiver === undefined
        this.#settling = false
        if (!this.#overdue) this.#over()
      })
    ))
  }

  #over(): void {
    const status = this.#process.status
    if (status !== undefined && status.code !== 0) {
      const cause = new ServerExited({ pid: this.pid, ...status, stderr: this.stderr() })
      const { message } = cause
      return this.#lost(
        this.#settings.inheritsStderr ? `${message}; its messages are on the stderr of this process` : message,
        cause
      )
    }
    if (status === undefined && this.#stdinBroken) return this.#lost("The server no longer reads its stdin")
    this.#finish({ _tag: "ClosedByPeer" })
  }

  #lost(message: string, cause?: unknown): void {
    this.#finish({ _tag: "Lost", cause: connectionLost(message, cause) })
  }

  #finish(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#run(this.#inner.close)
    this.#receiver?.end(end)
  }
}

/**
 * Starts a server and connects to it. Closing the scope ends the server.
 *
 * **Ending.** The server's stdin is closed. After `shutdownTimeout` its process group gets SIGTERM, after the same
 * time again SIGKILL, and one second later closing completes in any case. The signals go to the whole group, so that a server
 * behind a wrapper (`sh -c`, `npx`) and a grandchild that ignores SIGTERM end too. When the server itself exits first,
 * the rest of its group is ended in the same way. Messages that arrive while the server is being ended are dropped.
 *
 * **Gotchas.** The server leads a process group of its own, so Ctrl-C in the terminal does not reach it: let signals
 * interrupt the effect, as `NodeRuntime.runMain` does. If this process exits without closing the scope, it sends
 * SIGTERM to the group, and if it exits while the scope closes and the group has got SIGTERM, SIGKILL. If it is killed,
 * the server only sees its stdin closed. A process that has left the group, as a daemon does, is not ended.
 *
 * Fails with `OpenFailed` if the process cannot be started. A server that exits with code 0, or closes its stdout, ends
 * the connection as `ClosedByPeer`. Any other exit ends it as `Lost`, with a {@link ServerExited} as the cause of the
 * error.
 *
 * @example
 * const connection = yield* Stdio.connect({ command: "node", args: ["server.js"], stderr: "capture" })
 * const { code } = yield* connection.exited
 */
export const connect = (options: Options): Effect.Effect<StdioConnection, TransportError, Scope.Scope> =>
  Effect.gen(function*() {
    const stderr = options.stderr ?? "inherit"
    const { maxStderrChars, maxUnsentChars } = yield* FixedBounds
    const { maxLineBytes, shutdownTimeout = "2 seconds" } = options
    const settings: Settings = {
      shutdownTimeout: Duration.toMillis(shutdownTimeout),
      maxStderrChars,
      onStderr: typeof stderr === "function" ? stderr : stderr === "forward" ? forward : undefined,
      inheritsStderr: stderr === "inherit"
    }
    const scope = yield* Effect.scope
    const run = Effect.runForkWith(yield* Effect.context<never>())
    return yield* Effect.acquireRelease(
      Effect.map(
        start(options.command, options.args ?? [], {
          cwd: options.cwd,
          env: environment(process.env, options.env, options.inheritEnv === true),
          stderr: stderr === "inherit" || stderr === "ignore" ? stderr : "pipe"
        }),
        (server) =>
          new ChildConnection(
            server,
            settings,
            (effect) => void Fiber.runIn(run(effect), scope),
            (outputBroken) =>
              NodeStreams.makeUnsafe(server.stdout, server.stdin, {
                maxLineBytes,
                maxUnsentChars,
                endOutput: true,
                outputBroken
              })
          )
      ),
      (connection) => connection.close
    )
  })

// A first `npx` downloads the server, and a container takes seconds to start.
const probeTimeout = "10 seconds"

/**
 * Makes a transport that starts a server for each connection. See {@link connect}.
 *
 * @example
 * Stdio.transport({ command: "uvx", args: ["mcp-server-time"], env: { TZ: "Europe/Berlin" } })
 */
export const transport = (options: Options): StdioTransport => ({ connect: connect(options), probeTimeout })
