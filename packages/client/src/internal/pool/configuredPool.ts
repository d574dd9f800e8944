/**
 * Applies a configuration to a pool: reads it, compares it with the running servers, and changes only the servers that
 * differ.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { PoolError } from "../../PoolError.ts"
import type { Entry } from "./configEntry.ts"
import type { Server } from "./poolEntry.ts"

/** A server of a configuration. */
export interface ConfiguredServer {
  readonly entry: Entry
  readonly server: Server
  /** Equal keys mean that a running server has this definition already. */
  readonly key: string
}

/** The servers of a configuration. */
export interface Config {
  readonly servers: ReadonlyMap<string, ConfiguredServer>
  /** The names of disabled entries. */
  readonly disabled: ReadonlyArray<string>
  /** One error for each entry that cannot be used. */
  readonly problems: ReadonlyArray<PoolError>
}

/** A configuration that can be read again. */
export interface ConfigSource {
  /** The path of the file, or another name for messages. */
  readonly name: string
  readonly read: Effect.Effect<Config, PoolError>
}

/** The changes after a configuration was read again, by the names of servers. */
export interface Reload {
  readonly added: ReadonlyArray<string>
  /** Servers whose definition has changed. They were closed, and are opened with the new one. */
  readonly changed: ReadonlyArray<string>
  readonly removed: ReadonlyArray<string>
  /** Servers that keep their connections, including those whose new entry is invalid. */
  readonly unchanged: ReadonlyArray<string>
  /** The entries that cannot be used. */
  readonly problems: ReadonlyArray<PoolError>
}

/** The configuration as it was applied last. */
export interface AppliedConfig extends Config {
  /** The entries that `include` has left out. */
  readonly excluded: ReadonlyArray<Entry>
}

/** The servers that a configuration is applied to: those of a pool, or those behind a gateway. */
export interface RunningServers {
  /** Adds a server. `after` is the name of the server that the configuration has before it. */
  readonly add: (name: string, server: ConfiguredServer, after: string | undefined) => Effect.Effect<void, PoolError>
  readonly remove: (name: string) => Effect.Effect<unknown>
  /** Replaces a server by one with another definition. Fails if it does not run. */
  readonly restart: (name: string, server: ConfiguredServer) => Effect.Effect<void, PoolError>
}

const serverOf = ({ reason }: PoolError): string | undefined => "server" in reason ? reason.server : undefined

const isOfSource = ({ reason }: PoolError): boolean =>
  reason._tag === "ConfigUnreadable" || reason._tag === "InvalidConfig"

/** Joins the configurations of several sources. An entry of a later source replaces that of an earlier one. */
const merge = (configs: ReadonlyArray<Config>): Config => {
  const servers = new Map<string, ConfiguredServer>()
  const disabled = new Set<string>()
  const problems = new Map<string | PoolError, PoolError>()
  for (const config of configs) {
    const names = [...config.servers.keys(), ...config.disabled, ...config.problems.flatMap((it) => serverOf(it) ?? [])]
    for (const name of names) {
      servers.delete(name)
      disabled.delete(name)
      problems.delete(name)
    }
    for (const [name, server] of config.servers) servers.set(name, server)
    for (const name of config.disabled) disabled.add(name)
    for (const problem of config.problems) problems.set(serverOf(problem) ?? problem, problem)
  }
  return { servers, disabled: [...disabled], problems: [...problems.values()] }
}

/** The options of `LiveConfig`. */
export interface LiveConfigOptions {
  /** Selects servers: all by default. The others are in `excluded`. */
  readonly include?: ((name: string, entry: Entry) => boolean) | undefined
  /** Whether each problem is an error: false by default. */
  readonly isStrict?: boolean | undefined
}

/**
 * A configuration that is applied to running servers, each time that it is read again. Only the servers that differ are
 * changed. `ClientPool.fromConfig` and the gateway use it.
 *
 * @example
 * const live = new ServerConfig.LiveConfig([NodeConfig.file("mcp.json")], servers)
 * const { added, changed, removed } = yield* live.reload
 */
export class LiveConfig {
  readonly #sources: ReadonlyArray<ConfigSource>
  readonly #include: ((name: string, entry: Entry) => boolean) | undefined
  readonly #running: RunningServers
  readonly #turns = Semaphore.makeUnsafe(1)
  /** The keys of the servers that the configuration has added. */
  readonly #keys = new Map<string, string>()
  /** The configurations of the sources as they were read last. */
  readonly #last = new Map<ConfigSource, Config>()
  readonly #isStrict: boolean
  #reported: ReadonlySet<string> = new Set()
  current: AppliedConfig = { servers: new Map(), disabled: [], excluded: [], problems: [] }

  constructor(
    sources: ReadonlyArray<ConfigSource>,
    running: RunningServers,
    { include, isStrict = false }: LiveConfigOptions = {}
  ) {
    this.#sources = sources
    this.#include = include
    this.#isStrict = isStrict
    this.#running = running
  }

  /** Why a server that the configuration names does not run. */
  whyMissing(name: string): string | undefined {
    const { disabled, excluded, problems } = this.current
    if (disabled.includes(name)) return "its entry is disabled"
    if (excluded.some((entry) => entry.name === name)) return "the option include has left it out"
    return problems.find((problem) => serverOf(problem) === name)?.message
  }

  /** Reads the configuration and applies the differences. Several reloads at the same time run one after the other. */
  get reload(): Effect.Effect<Reload, PoolError> {
    return this.#turns.withPermit(Effect.gen({ self: this }, function*() {
      return yield* Effect.uninterruptible(this.#apply(yield* this.#read))
    }))
  }

  /**
   * Reads the sources. One that cannot be used, beside others that can, is a problem, and has the servers that it had
   * before. Fails if no source can be used.
   */
  get #read(): Effect.Effect<Config, PoolError> {
    return Effect.gen({ self: this }, function*() {
      const last = this.#last
      const read = yield* Effect.forEach(
        this.#sources,
        (source) => Effect.map(Effect.result(source.read), (result) => ({ source, result }))
      )
      const failures = read.flatMap(({ result }) => Result.isFailure(result) ? [result.failure] : [])
      if (failures.length > 0 && (this.#isStrict || failures.length === read.length)) return yield* failures[0]!
      const config = merge(read.map(({ result, source }) => {
        if (Result.isSuccess(result)) {
          last.set(source, result.success)
          return result.success
        }
        const { disabled = [], problems = [], servers = new Map() } = last.get(source) ?? {}
        return { servers, disabled, problems: [...problems, result.failure] }
      }))
      const [problem] = config.problems
      return this.#isStrict && problem !== undefined ? yield* problem : config
    })
  }

  /**
   * Reloads at this interval. A configuration that cannot be read is logged when its error changes. So is a defect in a
   * function of the host, which must not end the watching.
   */
  watch(interval: Duration.Input): Effect.Effect<never> {
    return Effect.suspend(() => {
      let before: string | undefined
      const warn = (message: string, cause?: unknown): Effect.Effect<void> => {
        if (message === before) return Effect.void
        before = message
        return Effect.logWarning(`${message}. The servers stay as they are`, ...cause === undefined ? [] : [cause])
      }
      const once = Effect.catchDefect(
        Effect.matchEffect(this.reload, {
          onSuccess: () => Effect.sync(() => void (before = undefined)),
          onFailure: ({ message }) => warn(message)
        }),
        (defect) => warn("Reading the configuration failed", defect)
      )
      return Effect.forever(Effect.andThen(Effect.sleep(interval), once))
    })
  }

  #apply({ disabled, problems, servers }: Config): Effect.Effect<Reload> {
    return Effect.gen({ self: this }, function*() {
      const running = this.#running
      const keys = this.#keys
      const wanted = new Map<string, ConfiguredServer>()
      const excluded: Array<Entry> = []
      for (const [name, server] of servers) {
        if (this.#include?.(name, server.entry) ?? true) wanted.set(name, server)
        else excluded.push(server.entry)
      }
      const invalid = new Set(problems.map(serverOf))
      const kept = (name: string) => wanted.has(name) ? wanted.get(name)!.key === keys.get(name) : invalid.has(name)
      const names = [...keys.keys()]
      const unchanged = names.filter(kept)
      const removed = names.filter((name) => !wanted.has(name) && !kept(name))
      const changed = names.filter((name) => wanted.has(name) && !kept(name))
      const failed: Array<PoolError> = []
      const added: Array<string> = []

      // The names, and the places below `maxServers`, are free before the old servers are closed.
      const closing = yield* Effect.forkChild(
        Effect.forEach(removed, (name) => running.remove(name), { concurrency: "unbounded", discard: true }),
        { startImmediately: true }
      )
      const replacing = yield* Effect.forkChild(
        Effect.forEach(changed, (name) => {
          const server = wanted.get(name)!
          // The host may have removed it.
          return Effect.catch(running.restart(name, server), () => Effect.ignore(running.add(name, server, undefined)))
        }, { concurrency: "unbounded", discard: true }),
        { startImmediately: true }
      )
      for (const name of removed) keys.delete(name)
      let after: string | undefined
      for (const [name, server] of wanted) {
        const before = after
        after = name
        if (keys.has(name)) {
          if (changed.includes(name)) keys.set(name, server.key)
          continue
        }
        const result = yield* Effect.result(running.add(name, server, before))
        if (Result.isSuccess(result)) {
          added.push(name)
          keys.set(name, server.key)
        } else failed.push(result.failure)
      }
      yield* Fiber.join(closing)
      yield* Fiber.join(replacing)
      const all = [...problems, ...failed]
      this.current = { servers: wanted, disabled, excluded, problems: all }
      yield* this.#report(all)
      return { added, changed, removed, unchanged, problems: all }
    })
  }

  /** Logs the problems that the previous reading did not have. */
  #report(problems: ReadonlyArray<PoolError>): Effect.Effect<void> {
    const before = this.#reported
    this.#reported = new Set(
      problems.map((problem) =>
        isOfSource(problem)
          ? `${problem.message}. The servers of the other configurations run. Correct it, or make this an error with ` +
            "the option onInvalidConfig"
          : problem.message
      )
    )
    return Effect.forEach(
      Array.from(this.#reported).filter((message) => !before.has(message)),
      (message) => Effect.logWarning(message),
      { discard: true }
    )
  }
}
