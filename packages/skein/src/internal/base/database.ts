/**
 * The databases of stores: a file of SQLite, or PostgreSQL.
 */
import type { Duration } from "./types.ts"

/** A file of SQLite, for the processes of one computer. */
export interface SqliteOptions {
  /** The file. It is created, readable for its owner only, if it does not exist. Its folder must exist. */
  readonly filename: string
  /**
   * `"normal"` (default): data survives any end of the process; a power failure may revert the last moments. `"full"`: it
   * survives a power failure too, at the cost of one `fsync` per transaction.
   */
  readonly synchronous?: "normal" | "full" | undefined
}

/** The options of TLS. They require TLS, and verify the certificate. */
export interface TlsOptions {
  /** The certificates of authorities, in PEM. */
  readonly ca?: string | Uint8Array | ReadonlyArray<string | Uint8Array> | undefined
  /** The certificate of this client, in PEM. */
  readonly cert?: string | Uint8Array | undefined
  /** The private key of this client, in PEM. */
  readonly key?: string | Uint8Array | undefined
  /** The name that the certificate must have: that of the host by default. */
  readonly servername?: string | undefined
  /** `false`: the certificate is not verified. Default `true`. */
  readonly rejectUnauthorized?: boolean | undefined
}

/**
 * The connection to PostgreSQL. The environment variables of PostgreSQL (`PGHOST` and so on) fill in members that are neither
 * given here nor in `url`.
 */
export interface PostgresOptions {
  /** `postgres://user:password@host:5432/database?sslmode=…`. Its parts take precedence over the members below. */
  readonly url?: string | undefined
  /** A host name, or the folder of a Unix socket. */
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly database?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** Whether to use TLS, or its options. */
  readonly ssl?: boolean | TlsOptions | undefined
  /** The name of this process in the views of the database; `skein` by default. */
  readonly applicationName?: string | undefined
  /** The most connections: 10 by default. */
  readonly maxConnections?: number | undefined
  /** The longest wait for a connection to open or to become free: 10 seconds by default. */
  readonly connectTimeout?: Duration | undefined
  /** The longest execution of one statement: 30 seconds by default; `Infinity` for no bound. */
  readonly statementTimeout?: Duration | undefined
  /** The longest pause between two statements of a transaction: 30 seconds by default; `Infinity` for no bound. */
  readonly idleInTransactionTimeout?: Duration | undefined
  /** Other settings of each connection by name, as `{ search_path: "shop" }`: none by default. */
  readonly settings?: { readonly [name: string]: string } | undefined
  /** Whether statements are prepared: `true` by default; `false` for poolers that do not support it. */
  readonly prepare?: boolean | undefined
}
