/**
 * A server as a child process: started without a shell, in a process group of its own, and ended with everybody in it.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import type { Readable, Writable } from "node:stream"

const windows = process.platform === "win32"

/** What a child sees of this process's environment, where nothing else is asked for. */
export const allowedEnv: ReadonlyArray<string> = windows
  ? [
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR"
  ]
  : [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME"
  ]

type Env = Readonly<Record<string, string | undefined>>

/** The environment of a child: what is allowed (or all) of `host`, and what is given on top; `undefined` takes one away. */
export const environment = (host: Env, given: Env | undefined, inherit: boolean): Record<string, string> => {
  const env: Record<string, string> = {}
  for (const name of inherit ? Object.keys(host) : allowedEnv) {
    const value = host[name]
    // A shell exports its functions as such values: they are code, not data.
    if (value !== undefined && (inherit || !value.startsWith("()"))) env[name] = value
  }
  if (given !== undefined) {
    for (const [name, value] of Object.entries(given)) {
      if (value === undefined) delete env[name]
      else env[name] = value
    }
  }
  return env
}

/** How a process ended: with a code, or by a signal. */
export interface ExitStatus {
  readonly code: number | undefined
  readonly signal: string | undefined
}

// The dead of a group count as members until somebody collects them, and in a container the first process may never do so.
const onlyZombies = (group: number): boolean => {
  if (process.platform !== "linux") return false
  try {
    for (const entry of readdirSync("/proc")) {
      const pid = Number(entry)
      if (!Number.isInteger(pid)) continue
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
        // The name comes in parentheses and may hold anything; after it come the state, the parent and the group.
        const [state, , member] = stat.slice(stat.lastIndexOf(")") + 2).split(" ", 3)
        if (Number(member) === group && state !== "Z" && state !== "X") return false
      } catch {
        // It ended meanwhile.
      }
    }
    return true
  } catch {
    return false
  }
}

/** How long each step of the end may take. */
export interface Graces {
  readonly stdin: Duration.Duration
  readonly term: Duration.Duration
  readonly kill: Duration.Duration
}

const ignore = (): void => {}

// Servers that were started and not let go of. A host that exits before its scopes are closed asks those to leave too, as far as
// it still can; one that is killed by a signal cannot, and leaves them nothing but a closed stdin.
const held = new Set<ServerProcess>()

const onHostExit = (): void => {
  for (const server of held) server.signal("SIGTERM")
}

/** A running child and its process group. */
export class ServerProcess {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable | null
  /** How the process ended; `undefined` while it runs. */
  status: ExitStatus | undefined
  readonly #child: ChildProcess
  readonly #waiters = new Set<() => void>()
  #gone = false

  constructor(child: ChildProcess) {
    this.pid = child.pid!
    this.stdin = child.stdin!
    this.stdout = child.stdout!
    this.stderr = child.stderr
    this.#child = child
    child.once("exit", this.#onExit)
    child.on("error", ignore)
    this.stdin.on("error", ignore)
    if (held.size === 0) process.on("exit", onHostExit)
    held.add(this)
  }

  readonly #onExit = (code: number | null, signal: string | null): void => {
    this.status = { code: code ?? undefined, signal: signal ?? undefined }
    this.#look()
    for (const waiter of this.#waiters) waiter()
    this.#waiters.clear()
  }

  /** Succeeds when the process itself has ended; others of its group may be left. */
  readonly exited: Effect.Effect<ExitStatus> = Effect.callback((resume) => {
    if (this.status !== undefined) return resume(Effect.succeed(this.status))
    const waiter = () => resume(Effect.succeed(this.status!))
    this.#waiters.add(waiter)
    return Effect.sync(() => this.#waiters.delete(waiter))
  })

  /** Whether the process and everybody in its group is gone. Once they are, the number may be somebody else's. */
  get gone(): boolean {
    return this.#gone
  }

  #look(closely = false): boolean {
    if (this.#gone || this.status === undefined) return this.#gone
    return this.#gone = windows || !this.#kill(0) || (closely && onlyZombies(this.pid))
  }

  #kill(signal: NodeJS.Signals | 0): boolean {
    try {
      return windows ? this.#child.kill(signal) : process.kill(-this.pid, signal)
    } catch {
      // Nobody is left (ESRCH), or nobody whom this process may signal (EPERM).
      return false
    }
  }

  // There is no notice of the end of a grandchild: the group has to be asked for, less and less often. The close look costs
  // milliseconds and is for those that are still there after some.
  #poll(wait: number): Effect.Effect<void> {
    if (this.#look(wait > 16)) return Effect.void
    return Effect.andThen(Effect.sleep(wait), Effect.suspend(() => this.#poll(Math.min(2 * wait, 250))))
  }

  #within(grace: Duration.Duration): Effect.Effect<boolean> {
    return Effect.map(
      Effect.timeoutOption(Effect.andThen(this.exited, Effect.suspend(() => this.#poll(2))), grace),
      Option.isSome
    )
  }

  /** Signals the process and its group, unless nobody is left. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#look()) this.#kill(signal)
  }

  /**
   * Ends the process and its group: close stdin, wait; SIGTERM, wait; SIGKILL, wait. Succeeds as soon as nobody is left, and at
   * the latest when the three graces are over. May run again.
   */
  end(graces: Graces): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.stdin.end()
      return Effect.flatMap(this.#within(graces.stdin), (gone) => {
        if (gone) return Effect.void
        this.signal("SIGTERM")
        return Effect.flatMap(this.#within(graces.term), (gone) => {
          if (gone) return Effect.void
          this.signal("SIGKILL")
          return Effect.asVoid(this.#within(graces.kill))
        })
      })
    })
  }

  /** Lets go of the process: closes the pipes and keeps nothing alive. */
  release(): void {
    held.delete(this)
    if (held.size === 0) process.off("exit", onHostExit)
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
    : cwd !== undefined && !existsSync(cwd)
    ? `the working directory ${String(cwd)} does not exist`
    : "the command was not found"
  return new TransportError({
    reason: new OpenFailed({ message: `Cannot start ${JSON.stringify(command)}: ${why}`, cause })
  })
}

/** Starts a process; it leads a process group of its own where there are such things. Uninterruptible: it takes no time. */
export const start = (
  command: string,
  args: ReadonlyArray<string>,
  options: Pick<SpawnOptions, "cwd" | "env"> & { readonly stderr: "pipe" | "inherit" | "ignore" }
): Effect.Effect<ServerProcess, TransportError> =>
  Effect.callback<ServerProcess, TransportError>((resume) => {
    const fail = (cause: unknown): void => resume(Effect.fail(openError(command, options.cwd, cause)))
    let child: ChildProcess
    try {
      child = spawn(command, args, {
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
      // When this process has no file descriptors left, there are no streams either.
      for (const stream of (child.stdio as ChildProcess["stdio"] | undefined) ?? []) stream?.destroy()
      fail(cause)
    })
    child.once("spawn", () => {
      child.removeAllListeners("error")
      resume(Effect.succeed(new ServerProcess(child)))
    })
  })
