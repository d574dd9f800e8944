/**
 * A configuration of servers that a pool can read again. `NodeConfig` makes it, and `ClientPool.fromConfig` takes it.
 */
import type * as Effect from "effect/Effect"
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
