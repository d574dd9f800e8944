/**
 * `skein dev`: a server that is restarted when its files change, while its hosts stay connected.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import * as NodeStreams from "@skein/runtime/NodeStreams"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { existsSync } from "node:fs"
import { relative, resolve, sep } from "node:path"
import { development, resolveEnv } from "../connection/connection.ts"
import { sanitize, sanitizeOutput } from "../base/format.ts"
import { isModule as isServed } from "../base/nodeFiles.ts"
import { isFolder, projectFolder } from "../base/nodeProject.ts"
import { type CommandFailed, failed, Process } from "../base/process.ts"
import { type BridgeBounds, serveBridge } from "./nodeHttpBridge.ts"
import { ownCommand, runCommandLine } from "../base/nodeProgram.ts"
import { restart, start } from "./nodeRestart.ts"
import { supervise } from "./nodeSupervise.ts"
import { isIgnoredFolder, watchFiles } from "./nodeWatch.ts"
import { type Output, Relay } from "./relay.ts"
import type { HttpLine } from "./nodeRun.ts"

/** A parsed command line of `dev`. */
export interface DevLine extends HttpLine, BridgeBounds {
  /** A command, or a module as a command without arguments. */
  readonly target: { readonly command: string; readonly args: ReadonlyArray<string> }
  readonly exportName: string | undefined
  readonly dotenv: string | undefined
  /** Variables for the server, in addition to those of this process. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The files and folders to watch. Empty: the folder of the project. */
  readonly watch: ReadonlyArray<string>
  /** In milliseconds. */
  readonly debounce: number
  /** In milliseconds. */
  readonly startTimeout: number
  readonly maxWaiting: number
  readonly maxFolders: number
  /** In milliseconds. */
  readonly drainTimeout: number
  /** In milliseconds. */
  readonly closeTimeout: number
  readonly inspector: boolean
  readonly inspectorVersion: string
  /** Whether the command is a program to which nothing connects. */
  readonly restartOnly: boolean
  /** In milliseconds, with `restartOnly`. */
  readonly killTimeout: number
}

/** The number of changed files that wait: a restart is for all of them. */
const maxChanges = 100

/** How long the inspector may take to end after SIGTERM, in milliseconds, before it gets SIGKILL. */
const inspectorEndTimeout = 2_000

/** The module or command of a command line, as a command. */
const commandOf = (line: DevLine): { readonly command: string; readonly args: ReadonlyArray<string> } => {
  const { args, command } = line.target
  return isModule(line) ? runCommandLine({ ...line, module: command }) : { command, args }
}

/** Whether the operand is a module or a folder of modules rather than a command. */
const isModule = ({ target: { args, command } }: DevLine): boolean =>
  args.length === 0 && (/\.[cm]?[jt]sx?$/.test(command) || isServed(command))

/** The paths to watch by default: the project, and a folder of modules even if the project ignores it. */
const watchedOf = (line: DevLine): ReadonlyArray<string> => {
  const { command } = line.target
  if (!isModule(line)) return [process.cwd()]
  const project = projectFolder(command)
  const isInProject = !relative(project, resolve(command)).split(sep).some(isIgnoredFolder)
  return isInProject || !isFolder(command) ? [project] : [resolve(command), project]
}

/** Starts the official MCP Inspector, and waits until it ends. It starts servers of its own, which end with it. */
const inspect = (line: DevLine, args: ReadonlyArray<string>): Effect.Effect<void, CommandFailed> =>
  Effect.gen(function*() {
    const isWindows = process.platform === "win32"
    const ended = yield* start({
      command: isWindows ? "npx.cmd" : "npx",
      args: ["--yes", `@modelcontextprotocol/inspector@${line.inspectorVersion}`, ...args],
      env: {},
      shell: isWindows,
      killTimeout: inspectorEndTimeout,
      log: () => {}
    })
    const { code, problem } = yield* Deferred.await(ended)
    if (code === 0) return
    const report = problem === undefined ? `The MCP Inspector ended with ${code}` : `npx cannot be started: ${problem}`
    return yield* failed(3, report)
  }).pipe(Effect.scoped)

/** Waits until no request is in progress, for `timeout` milliseconds at most. */
export const drain = (relay: Pick<Relay, "isBusy">, timeout: number): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (relay.isBusy) yield* Effect.sleep(20)
  }).pipe(Effect.timeoutOption(timeout), Effect.asVoid)

/** Runs until the host closes stdin, or the command is interrupted. */
export const dev = (line: DevLine): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { console } = yield* Process
    const log = (text: string): void => console.warn(`skein dev: ${sanitize(text)}`)
    if (isModule(line) && !existsSync(line.target.command)) {
      return yield* failed(2, `The module ${line.target.command} does not exist`)
    }
    // Over stdio the inspector is the host, and starts this command.
    if (line.inspector && !line.http) return yield* inspect(line, ownCommand())
    const paths = line.watch.length > 0 ? line.watch : watchedOf(line)
    const listeners = new Set<Queue.Enqueue<string>>()
    yield* watchFiles({
      paths,
      maxFolders: line.maxFolders,
      onChange: (path) => listeners.forEach((changes) => Queue.offerUnsafe(changes, path)),
      warn: log
    })
    /** The files that change from now on, until the scope closes. */
    const subscribe = Effect.tap(
      Effect.acquireRelease(
        Queue.dropping<string>(maxChanges),
        (changes) => Effect.sync(() => listeners.delete(changes))
      ),
      (changes) => Effect.sync(() => listeners.add(changes))
    )
    if (line.restartOnly) {
      log(`Watching ${paths.join(", ")}`)
      return yield* restart(yield* subscribe, {
        ...commandOf(line),
        env: { ...development, ...resolveEnv(line.env, process.env) },
        debounce: line.debounce,
        killTimeout: line.killTimeout,
        log
      })
    }
    const open = Effect.fnUntraced(function*(host: Output) {
      const relay = new Relay(host, { log, maxWaiting: line.maxWaiting })
      yield* Effect.forkScoped(supervise(relay, yield* subscribe, {
        ...commandOf(line),
        env: { ...development, ...resolveEnv(line.env, process.env) },
        debounce: line.debounce,
        startTimeout: line.startTimeout,
        closeTimeout: line.closeTimeout,
        log,
        stderr: (text) => console.warn(sanitizeOutput(text.replace(/\r?\n$/, "")))
      }))
      return relay
    })
    if (!line.http) {
      const host = yield* NodeStreams.make(process.stdin, process.stdout)
      const relay = yield* open(host)
      const ended = yield* Deferred.make<void>()
      host.open({
        message: (message) => relay.fromHost(message),
        end: () => Deferred.doneUnsafe(ended, Effect.void)
      })
      const hint = process.stdin.isTTY
        ? ". A client speaks MCP on stdin: --inspector starts one, and --http serves a URL"
        : ""
      log(`Watching ${paths.join(", ")}${hint}`)
      yield* Deferred.await(ended)
      return yield* drain(relay, line.drainTimeout)
    }
    const { maxBodyBytes, maxSessions } = line
    const url = yield* serveBridge({
      host: line.host ?? "127.0.0.1",
      port: line.port ?? 3000,
      maxSessions,
      maxBodyBytes,
      connect: Effect.gen(function*() {
        const host: { receiver?: Receiver } = {}
        const relay = yield* open({ send: (message) => host.receiver?.message(message as JsonRpc.Inbound) })
        return {
          open: (receiver) => void (host.receiver = receiver),
          send: (message) => {
            relay.fromHost(message as JsonRpc.Inbound)
            return true
          },
          drained: Effect.void,
          close: Effect.void
        } satisfies Connection
      }),
      warn: log
    })
    log(`Listening on ${url}, watching ${paths.join(", ")}`)
    if (!line.inspector) return yield* Effect.never
    return yield* inspect(line, ["--transport", "http", "--server-url", url])
  }).pipe(Effect.scoped)
