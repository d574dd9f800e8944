/**
 * A server as a child process. It is started without a shell (on Windows, `cmd.exe` runs scripts), in a process group of
 * its own, and the whole group is ended with it.
 */
import type { TransportError } from "@skein/runtime/TransportError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ChildProcess, SpawnOptions } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { openFailed } from "../base/errors.ts"
import { windowsCommand } from "./windowsCommand.ts"

const windows = process.platform === "win32"

// Loaded on first use, as in `nodeClient`: an import reads all exports of a module, and some of them load further modules.
const fs = () => process.getBuiltinModule("node:fs")

const unixEnv =
  "HOME LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES LOGNAME PATH SHELL TERM TMPDIR TZ USER XDG_CACHE_HOME XDG_CONFIG_HOME " +
  "XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME"
const windowsEnv =
  "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS OS PATH PATHEXT PROCESSOR_ARCHITECTURE " +
  "PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE WINDIR"

/** The environment variables that a child inherits by default. */
export const allowedEnv: ReadonlyArray<string> = (windows ? windowsEnv : unixEnv).split(" ")

type Env = Readonly<Record<string, string | undefined>>

/**
 * The environment of a child: the allowed variables (or all) of `host`, and the given ones. `undefined` removes a
 * variable. Windows ignores the case of their names.
 */
export const environment = (
  host: Env,
  given: Env | undefined,
  inherit: boolean,
  ignoresCase = windows
): Record<string, string> => {
  const env: Record<string, string> = {}
  for (const name of inherit ? Object.keys(host) : allowedEnv) {
    const value = host[name]
    // A shell exports its functions in this form. They are code, not data.
    if (value !== undefined && (inherit || !value.startsWith("()"))) env[name] = value
  }
  for (const [name, value] of Object.entries(given ?? {})) {
    if (ignoresCase) {
      for (const same of Object.keys(env)) if (same.toUpperCase() === name.toUpperCase()) delete env[same]
    }
    if (value === undefined) delete env[name]
    else env[name] = value
  }
  return env
}

/** How a process ended: with a code, or by a signal. */
export interface ExitStatus {
  readonly code: number | undefined
  readonly signal: string | undefined
}

// Zombies count as members of a group until their parent reaps them. In a container the first process may never do
// that.
const onlyZombies = (group: number): boolean => {
  if (process.platform !== "linux") return false
  try {
    for (const entry of fs().readdirSync("/proc")) {
      const pid = Number(entry)
      if (!Number.isInteger(pid)) continue
      try {
        const stat = fs().readFileSync(`/proc/${pid}/stat`, "latin1")
        // The name is in parentheses and may contain anything. The state, the parent and the group follow.
        const [state, , member] = stat.slice(stat.lastIndexOf(")") + 2).split(" ", 3)
        if (Number(member) === group && state !== "Z" && state !== "X") return false
      } catch {
        // The process has ended in the meantime.
      }
    }
    return true
  } catch {
    return false
  }
}

/** How long the end of a process waits for it after SIGKILL, in milliseconds. */
const killTimeout = 1_000

const ignore = (): void => {}

// Servers that were started and not released. When this process exits before they have ended, it sends them SIGTERM, or
// SIGKILL after that. When it is killed by a signal it cannot, and they only see their stdin closed.
const running = new Set<ServerProcess>()

const onProcessExit = (): void => {
  for (const server of running) server.signal(server.isTerminated ? "SIGKILL" : "SIGTERM")
}

/** A running child and its process group. */
export class ServerProcess {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable | null
  /** How the process ended; `undefined` while it runs. */
  status: ExitStatus | undefined
  /** Whether it got SIGTERM. */
  isTerminated = false
  readonly #child: ChildProcess
  readonly #exited = Deferred.makeUnsafe<ExitStatus>()
  /** Whether the process and all others of its group have ended. From then on the process id may be reused. */
  isGone = false

  constructor(child: ChildProcess) {
    this.pid = child.pid!
    this.stdin = child.stdin!
    this.stdout = child.stdout!
    this.stderr = child.stderr
    this.#child = child
    child.once("exit", this.#onExit)
    child.on("error", ignore)
    this.stdin.on("error", ignore)
    if (running.size === 0) process.on("exit", onProcessExit)
    running.add(this)
  }

  readonly #onExit = (code: number | null, signal: string | null): void => {
    this.status = { code: code ?? undefined, signal: signal ?? undefined }
    this.#checkGone()
    Deferred.doneUnsafe(this.#exited, Effect.succeed(this.status))
  }

  /** Waits until the process itself has exited. Other processes of its group may still run. */
  readonly exited: Effect.Effect<ExitStatus> = Deferred.await(this.#exited)

  #checkGone(closely = false): boolean {
    if (this.isGone || this.status === undefined) return this.isGone
    return this.isGone = windows || !this.#kill(0) || (closely && onlyZombies(this.pid))
  }

  #kill(signal: NodeJS.Signals | 0): boolean {
    try {
      return windows ? this.#child.kill(signal) : process.kill(-this.pid, signal)
    } catch {
      // No process is left (ESRCH), or none that this process may signal (EPERM).
      return false
    }
  }

  // The end of a grandchild is not reported, so the group is polled, less and less often. The search for zombies takes
  // milliseconds and starts only after 16 ms.
  #poll(wait: number): Effect.Effect<void> {
    if (this.#checkGone(wait > 16)) return Effect.void
    return Effect.andThen(Effect.sleep(wait), Effect.suspend(() => this.#poll(Math.min(2 * wait, 250))))
  }

  #endsWithin(millis: number): Effect.Effect<boolean> {
    return Effect.map(
      Effect.timeoutOption(Effect.andThen(this.exited, Effect.suspend(() => this.#poll(2))), millis),
      Option.isSome
    )
  }

  /** Signals the process and its group, unless they have ended. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#checkGone()) this.#kill(signal)
  }

  /**
   * Ends the process and its group: closes stdin, then sends SIGTERM, then SIGKILL, and waits after each. Returns as
   * soon as no process of the group is left, and at the latest 1 second after SIGKILL. It may run again.
   */
  end(shutdownTimeout: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      this.stdin.end()
      if (yield* this.#endsWithin(shutdownTimeout)) return
      this.isTerminated = true
      this.signal("SIGTERM")
      if (yield* this.#endsWithin(shutdownTimeout)) return
      this.signal("SIGKILL")
      yield* this.#endsWithin(killTimeout)
    })
  }

  /** Releases the process: closes the pipes, and lets this process exit while the child runs. */
  release(): void {
    running.delete(this)
    if (running.size === 0) process.off("exit", onProcessExit)
    this.stdin.destroy()
    this.stdout.destroy()
    this.stderr?.destroy()
    this.#child.off("exit", this.#onExit)
    if (this.status === undefined) this.#child.unref()
  }
}

const openError = (command: string, cwd: string | URL | undefined, cause: unknown): TransportError => {
  const code = (cause as { readonly code?: unknown } | undefined)?.code
  const why = code !== "ENOENT"
    ? cause instanceof Error ? cause.message : String(cause)
    : cwd !== undefined && !fs().existsSync(cwd)
    ? `the working directory ${String(cwd)} does not exist`
    : "the command was not found"
  return openFailed(`Cannot start ${JSON.stringify(command)}: ${why}`, cause)
}

// Some files of Windows cannot be examined, such as the links of its app store. They count as absent.
const isFile = (path: string): boolean => {
  try {
    return fs().statSync(path).isFile()
  } catch {
    return false
  }
}

/** The first line of a file, within its first 256 bytes. */
const firstLine = (path: string): string => {
  const { closeSync, openSync, readSync } = fs()
  let file: number | undefined
  try {
    file = openSync(path, "r")
    const start = Buffer.alloc(256)
    return start.toString("latin1", 0, readSync(file, start, 0, start.length, 0)).split(/[\r\n]/, 1)[0]!
  } catch {
    return ""
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

const directoryOf = (cwd: string | URL | undefined): string =>
  cwd === undefined ? process.cwd() : typeof cwd === "string" ? cwd : fileURLToPath(cwd)

/**
 * Starts a process, which leads a process group of its own except on Windows. It cannot be interrupted, since it takes
 * no time.
 */
export const start = (
  command: string,
  args: ReadonlyArray<string>,
  options: Pick<SpawnOptions, "cwd" | "env"> & { readonly stderr: "pipe" | "inherit" | "ignore" }
): Effect.Effect<ServerProcess, TransportError> =>
  Effect.callback<ServerProcess, TransportError>((resume) => {
    const fail = (cause: unknown): void => resume(Effect.fail(openError(command, options.cwd, cause)))
    let child: ChildProcess
    const program = windows
      ? windowsCommand(command, args, {
        env: options.env ?? process.env,
        cwd: directoryOf(options.cwd),
        isFile,
        firstLine
      })
      : { file: command, args, isVerbatim: false }
    if (typeof program === "string") {
      return resume(Effect.fail(openFailed(`Cannot start ${JSON.stringify(command)}: ${program}`)))
    }
    try {
      child = process.getBuiltinModule("node:child_process").spawn(program.file, program.args, {
        windowsVerbatimArguments: program.isVerbatim,
        cwd: options.cwd,
        env: options.env,
        stdio: ["pipe", "pipe", options.stderr],
        detached: !windows,
        shell: false,
        windowsHide: true
      })
    } catch (cause) {
      return fail(cause)
    }
    child.once("error", (cause) => {
      // If no file descriptors are free, there are no streams to destroy.
      for (const stream of (child.stdio as ChildProcess["stdio"] | undefined) ?? []) stream?.destroy()
      fail(cause)
    })
    child.once("spawn", () => {
      child.removeAllListeners("error")
      resume(Effect.succeed(new ServerProcess(child)))
    })
  })
