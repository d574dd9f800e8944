/**
 * The stdio transport: a server as a child process that lives and dies with a scope (revision 2026-07-28,
 * basic/transports/stdio; revision 2025-11-25, basic/transports and basic/lifecycle, Shutdown).
 *
 * **Gotchas.** On Windows a `.cmd` or `.bat` file (`npx`, for one) is a script: give `cmd.exe` as the command and `/c` as its
 * first argument. There are no process groups there: only the process itself is ended.
 */
import type { Connection, End, Receiver, Transport } from "@skein/runtime/Connection"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as NodeStreams from "@skein/runtime/NodeStreams"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import {
  allowedEnv,
  environment,
  type ExitStatus,
  type Graces,
  type ServerProcess,
  start
} from "./internal/stdio/process.ts"

export type { ExitStatus }

/** The names of the environment variables that a server gets when nothing is asked for: paths, the user, the language. */
export const defaultEnv: ReadonlyArray<string> = allowedEnv

/** How to start a server, and the bounds of the connection to it. */
export interface Options {
  /** The program, as a path or as a name that is looked up in `PATH`. No shell reads it. */
  readonly command: string
  readonly args?: ReadonlyArray<string> | undefined
  /** Variables on top of those in `defaultEnv`; `undefined` takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Gives the server all of this process's environment instead of the names in `defaultEnv`. Off by default. */
  readonly inheritEnv?: boolean | undefined
  /** The working directory; this process's by default. */
  readonly cwd?: string | URL | undefined
  /**
   * Where the server's stderr goes: to this process's (`inherit`, the default), nowhere (`ignore`), or into memory, of which
   * the last part is kept for the error that says how the server died (`capture`). A function is given the text as it comes,
   * and the last part is kept as well; what it throws is an uncaught exception.
   */
  readonly stderr?: "inherit" | "ignore" | "capture" | ((text: string) => void) | undefined
  /** How much of stderr is kept, in characters; 8 Ki by default. Older text is dropped. */
  readonly maxStderrChars?: number | undefined
  /** How long each step of the end may take. */
  readonly graces?: {
    /** From closing stdin to SIGTERM; 2 seconds by default. */
    readonly stdin?: Duration.Input | undefined
    /** From SIGTERM to SIGKILL; 2 seconds by default. */
    readonly term?: Duration.Input | undefined
    /** From SIGKILL until the process is given up; 1 second by default. */
    readonly kill?: Duration.Input | undefined
    /**
     * From the first sign of a server's end (it exits, or closes stdin or stdout) until the connection is over, when the
     * other signs do not follow; 500 milliseconds by default. In this time what it wrote last is read.
     */
    readonly settle?: Duration.Input | undefined
  } | undefined
  /** The longest line that is read, in bytes; 4 MiB by default. A longer one is skipped and received as `Invalid`. */
  readonly maxLineBytes?: number | undefined
  /**
   * How much may wait while the server does not read, in characters; 64 Mi by default. When that much waits, the next
   * message ends the connection as `Lost`.
   */
  readonly maxBufferedChars?: number | undefined
}

// How much of stderr the message of an error quotes, in characters; the error itself holds all that was kept.
const maxExcerpt = 1024

/** A server process that ended on its own with a code other than 0 or by a signal: the `cause` of a `TransportError`. */
export class ServerExited extends Data.TaggedError("ServerExited")<{
  readonly pid: number
  readonly code: number | undefined
  readonly signal: string | undefined
  /** The last of what it wrote to stderr, as far as that was captured. */
  readonly stderr: string
}> {
  override get message(): string {
    const how = this.signal === undefined ? `exited with code ${this.code}` : `was killed by ${this.signal}`
    const last = this.stderr.slice(-maxExcerpt).trim()
    return `The server ${how}${last === "" ? "" : `; the last of its stderr: ${last}`}`
  }
}

/** A connection to a child process. */
export interface StdioConnection extends Connection {
  /** The process id of the server; where there are process groups, also the id of its group. */
  readonly pid: number
  /** Succeeds when the process has ended, with how it did. */
  readonly exited: Effect.Effect<ExitStatus>
  /** The last of what the server wrote to stderr, as far as that is captured. */
  readonly stderr: () => string
}

/** A transport that starts one process per connection. */
export interface StdioTransport extends Transport {
  readonly connect: Effect.Effect<StdioConnection, TransportError, Scope.Scope>
}

interface Settings {
  readonly graces: Graces
  readonly settle: Duration.Duration
  readonly maxStderrChars: number
  readonly onStderr: ((text: string) => void) | undefined
}

class ChildConnection implements StdioConnection {
  readonly pid: number
  readonly exited: Effect.Effect<ExitStatus>
  readonly drained: Effect.Effect<void>
  readonly #process: ServerProcess
  readonly #inner: Connection
  readonly #settings: Settings
  // Runs an effect as a fiber of the scope that the connection lives in.
  readonly #run: (effect: Effect.Effect<void>) => void
  #receiver: Receiver | undefined
  #end: End | undefined
  #tail = ""
  #stderrOpen: boolean
  #stdoutOpen = true
  #stdinBroken = false
  #held = false
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
        // Whoever is left of the group has lost its leader. When this connection is being closed, that sees to them.
        return this.#closing || process.gone ? Effect.void : process.end(settings.graces)
      })))
  }

  readonly stderr = (): string => this.#tail

  open(receiver: Receiver): void {
    if (this.#end !== undefined) return receiver.end(this.#end)
    this.#receiver = receiver
    this.#inner.open({
      message: (message) => receiver.message(message),
      end: (end) => {
        this.#stdoutOpen = false
        if (end._tag === "Ended") this.#settle()
        else this.#finish(end)
      }
    })
    this.#unsettle()
  }

  send(message: Parameters<Connection["send"]>[0]): boolean {
    return this.#inner.send(message)
  }

  pause(): void {
    this.#held = true
    this.#inner.pause!()
  }

  resume(): void {
    this.#held = false
    this.#inner.resume!()
    this.#unsettle()
  }

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#closing = true
    return Effect.andThen(
      this.#inner.close,
      Effect.andThen(this.#process.end(this.#settings.graces), Effect.sync(() => this.#process.release()))
    )
  })

  readonly #onStderr = (text: string): void => {
    const tail = this.#tail + text
    this.#tail = tail.slice(Math.max(0, tail.length - this.#settings.maxStderrChars))
    this.#settings.onStderr?.(text)
  }

  readonly #onStderrClose = (): void => {
    this.#stderrOpen = false
    if (this.#settling) this.#settle()
  }

  // The signs of a server's end come in any order, and some may never come: a grandchild can keep stdout open.
  #settle(): void {
    if (this.#end !== undefined) return
    if (this.#process.status !== undefined && !this.#stdoutOpen && !this.#stderrOpen) return this.#over()
    if (this.#settling) return
    this.#settling = true
    this.#run(Effect.andThen(
      Effect.sleep(this.#settings.settle),
      Effect.sync(() => {
        if (this.#end !== undefined) return
        // What the receiver has not asked for yet is not thrown away: the end waits for `open` and for `resume`.
        this.#overdue = this.#stdoutOpen && (this.#held || this.#receiver === undefined)
        this.#settling = false
        if (!this.#overdue) this.#over()
      })
    ))
  }

  #unsettle(): void {
    if (!this.#overdue || this.#held) return
    this.#overdue = false
    this.#settle()
  }

  #over(): void {
    const status = this.#process.status
    if (status !== undefined && status.code !== 0) {
      const cause = new ServerExited({ pid: this.pid, ...status, stderr: this.#tail })
      return this.#lost(cause.message, cause)
    }
    if (status === undefined && this.#stdinBroken) return this.#lost("The server does not read its stdin any more")
    this.#finish({ _tag: "Ended" })
  }

  #lost(message: string, cause?: unknown): void {
    this.#finish({ _tag: "Lost", cause: new TransportError({ reason: new ConnectionLost({ message, cause }) }) })
  }

  #finish(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#run(this.#inner.close)
    this.#receiver?.end(end)
  }
}

/**
 * Starts a server and connects to it; the scope ends it.
 *
 * The end: stdin is closed, then SIGTERM, then SIGKILL, each after its grace and to the whole process group, so that a server
 * behind a wrapper (`sh -c`, `npx`) and a grandchild that ignores SIGTERM are gone too. When the server itself exits first,
 * whoever is left of its group is ended in the same way. What is received while it ends is dropped.
 *
 * A server does not hear the Ctrl-C of the terminal, since it leads a group of its own: let the host's signals interrupt the
 * effect, as `NodeRuntime.runMain` does. A host that exits without closing the scope sends SIGTERM to the group in passing;
 * one that is killed leaves the server a closed stdin, and nothing else can be done. A process that has left the group, as
 * a daemon does, is out of reach.
 *
 * Fails with the reason `OpenFailed` when the process cannot be started. A server that exits with code 0 or closes its stdout is
 * `Ended`; one that dies in another way is `Lost`, with a `ServerExited` as the cause of the error.
 */
export const connect = (options: Options): Effect.Effect<StdioConnection, TransportError, Scope.Scope> =>
  Effect.gen(function*() {
    const stderr = options.stderr ?? "inherit"
    const settings: Settings = {
      graces: {
        stdin: Duration.fromInputUnsafe(options.graces?.stdin ?? 2_000),
        term: Duration.fromInputUnsafe(options.graces?.term ?? 2_000),
        kill: Duration.fromInputUnsafe(options.graces?.kill ?? 1_000)
      },
      settle: Duration.fromInputUnsafe(options.graces?.settle ?? 500),
      maxStderrChars: options.maxStderrChars ?? 8 * 1024,
      onStderr: typeof stderr === "function" ? stderr : undefined
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
                maxLineBytes: options.maxLineBytes,
                maxBufferedChars: options.maxBufferedChars,
                flushTimeout: 0,
                throttle: false,
                endOutput: true,
                outputBroken
              })
          )
      ),
      (connection) => connection.close
    )
  })

/** The transport that starts a server for each connection. */
export const transport = (options: Options): StdioTransport => ({ connect: connect(options) })
