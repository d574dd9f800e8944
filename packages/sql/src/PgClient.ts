/**
 * A client of PostgreSQL on `pg`: Effect's `SqlClient` with a pool of connections, and `LISTEN` on one more connection.
 *
 * **When to use**
 *
 * For any number of processes on one database. `pg` is a peer dependency and is loaded when the layer is built. The
 * driver is thin, and will be removed when the official one is published for Effect 4.1.
 *
 * **Gotchas**
 *
 * - The settings of the server determine the durability: with `synchronous_commit = on` a commit survives a power
 *   failure.
 * - When the server goes away, statements on open connections fail with `ConnectionError`. These connections are
 *   discarded, and the next statement opens a new one. No statement is retried: whether a running one was executed is
 *   unknown.
 * - An interrupted statement is cancelled on the server, through another connection. If that fails, or if the statement
 *   has not ended after `connectTimeout`, the statement's connection is closed.
 * - `stream` reads all rows first.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const sql = yield* PgClient.PgClient
 *   yield* sql.listen("orders", (id) => Queue.offerUnsafe(changed, id), () => Queue.offerUnsafe(changed, "*"))
 *   return yield* sql`SELECT * FROM orders WHERE done = ${false}`
 * })
 * Effect.provide(program, PgClient.layer({ url: "postgres://localhost/shop" }))
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import type { ConnectionOptions } from "node:tls"
import type * as pg from "pg"
import { makeConnection, makeNames, type Types } from "./internal/pgConnection.ts"
import { pgError } from "./internal/pgError.ts"
import { makeListen } from "./internal/pgListener.ts"

/**
 * The connection to the database, and the bounds of its use. The environment variables of PostgreSQL (`PGHOST` and so
 * on) fill in members that are neither given here nor in `url`.
 */
export interface Options {
  /** `postgres://user:password@host:5432/database?sslmode=…`. Its parts take precedence over the members below. */
  readonly url?: string | Redacted.Redacted<string> | undefined
  /** A host name, or the folder of a Unix socket. */
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly database?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | Redacted.Redacted<string> | undefined
  readonly ssl?: boolean | ConnectionOptions | undefined
  /** The name of this process in the views of the server; `skein` by default. */
  readonly applicationName?: string | undefined
  /**
   * The most connections of the pool: 10 by default. A statement that needs one more waits for it, at most
   * `connectTimeout`. The connection of `listen` and those that cancel statements are additional.
   */
  readonly maxConnections?: number | undefined
  /**
   * The longest wait for a connection to open or to become free: 10 seconds by default. Then the statement fails with
   * `ConnectionError`. It also bounds the wait for a server that does not react: when a statement has not ended for this
   * long after `statementTimeout` or after its cancellation, the client closes its connection.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /** The time after which an unused connection is closed: 30 seconds by default. */
  readonly idleTimeout?: Duration.Input | undefined
  /**
   * The longest execution of one statement on the server, waiting for locks included: 30 seconds by default;
   * `Duration.infinity` for no bound. Then the statement fails with `StatementTimeoutError`.
   */
  readonly statementTimeout?: Duration.Input | undefined
  /**
   * The longest pause between two statements of a transaction: 30 seconds by default; `Duration.infinity` for no bound.
   * Then the server ends the transaction and its connection, so that a process that is stopped in the middle does not
   * hold its locks forever.
   */
  readonly idleInTransactionTimeout?: Duration.Input | undefined
  /**
   * The most prepared statements per connection: 200 by default; 0 for none, as some connection poolers require. The
   * server compiles a prepared statement once, which halves its work. The client prepares the first statements with
   * values that occur a second time, except `unprepared` ones.
   */
  readonly maxPreparedStatements?: number | undefined
  /** Renames identifiers in statements, for example from `camelCase` to `snake_case`. By default names stay. */
  readonly transformQueryNames?: ((name: string) => string) | undefined
  /** Renames the columns of results. By default names stay, which is the fastest. */
  readonly transformResultNames?: ((name: string) => string) | undefined
}

/** A client of PostgreSQL: an `SqlClient` that can also listen. */
export interface Client extends SqlClient.SqlClient {
  /**
   * Calls `onNotification` with the payload of each `NOTIFY` on the channel until the scope closes. It returns when the
   * server listens, so no later notification is missed. It fails if the first connection cannot be opened.
   *
   * All channels of a client share one connection. When it is lost, the client opens it again, without a limit on the
   * number of attempts: after 100 ms, then after twice the time, at most 5 seconds. Then it calls `onReconnected`,
   * because the notifications in between are lost. The two functions must not throw.
   */
  readonly listen: (
    channel: string,
    onNotification: (payload: string) => void,
    onReconnected: () => void
  ) => Effect.Effect<void, SqlError, Scope.Scope>
}

/** The service of a {@link Client}. */
export class PgClient extends Context.Service<PgClient, Client>()("@skein/sql/PgClient") {}

/**
 * Makes a client whose connections close with the scope. It opens one connection at once and fails if that fails.
 *
 * **Details**
 *
 * An `int8` is read as a number if it is a safe integer, else as a `bigint`. If `SqlClient.SafeIntegers` is provided,
 * it is always read as a `bigint`. `raw` returns the result of `pg`.
 *
 * @example
 * const client = yield* PgClient.make({ url: process.env.DATABASE_URL, maxConnections: 20 })
 */
export const make = (options: Options): Effect.Effect<Client, SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function*() {
    const { default: { Client, Pool, types } } = yield* Effect.promise(() => import("pg"))
    const config = clientConfig(options)
    const connectMillis = millis(options.connectTimeout ?? "10 seconds")
    const statementMillis = millis(options.statementTimeout ?? "30 seconds")

    /** Makes a client for short statements: to listen, and to cancel. */
    const connect = (): pg.Client => {
      const client = new Client({ ...config, query_timeout: connectMillis })
      // Without a listener, an error on an idle connection would end the process.
      client.on("error", ignore)
      return client
    }
    const shared = {
      types: makeTypes(types.getTypeParser),
      nameOf: makeNames(options.maxPreparedStatements ?? 200),
      cancel: (client: pg.ClientBase) => Effect.promise(() => cancelStatement(connect(), client as pg.Client)),
      maxCancelMillis: connectMillis,
      maxSilenceMillis: connectMillis === 0 || statementMillis === 0 ? 0 : connectMillis + statementMillis
    }

    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const pool = new Pool({
          ...config,
          max: options.maxConnections ?? 10,
          idleTimeoutMillis: millis(options.idleTimeout ?? "30 seconds")
        })
        pool.on("error", ignore)
        // The pool listens for errors only while a client is idle; this listener stays for the life of the client.
        pool.on("connect", (client) => void client.on("error", ignore))
        return pool
      }),
      (pool) => Effect.ignoreCause(Effect.timeout(Effect.promise(() => pool.end()), "5 seconds"))
    )
    const connections = new WeakMap<pg.PoolClient, Connection>()
    const connectionOf = (client: pg.PoolClient): Connection => {
      const existing = connections.get(client)
      if (existing !== undefined) return existing
      const connection = makeConnection(client, shared)
      connections.set(client, connection)
      return connection
    }

    /** Takes a client out of the pool. A client that arrives after `release` goes back to the pool at once. */
    const checkout = () => {
      let client: pg.PoolClient | undefined
      let released = false
      return {
        acquire: Effect.callback<Connection, SqlError>((resume) => {
          pool.connect((error, acquired) => {
            if (acquired === undefined) return resume(Effect.fail(pgError(error, "connect")))
            if (released) return acquired.release()
            client = acquired
            resume(Effect.succeed(connectionOf(acquired)))
          })
        }),
        release: () => {
          released = true
          // A client that is still in a transaction cannot be reused: the pool discards it.
          client?.release(client.getTransactionStatus() !== "I")
        }
      }
    }
    const acquirer = Effect.suspend(() => {
      const { acquire, release } = checkout()
      return Effect.andThen(Effect.addFinalizer(() => Effect.sync(release)), acquire)
    })
    const borrower: SqlClient.SqlClient.MakeOptions["borrower"] = (f) =>
      Effect.suspend(() => {
        const { acquire, release } = checkout()
        return Effect.onExit(Effect.flatMap(acquire, f), () => Effect.sync(release))
      })

    yield* borrower((connection) => connection.executeUnprepared("SELECT 1", [], undefined))

    const { database, host, port } = connect()
    const client = yield* SqlClient.make({
      acquirer,
      borrower,
      driver: "pg",
      compiler: makeCompiler(options.transformQueryNames),
      spanAttributes: [
        ["db.system.name", "postgresql"],
        ["db.namespace", database],
        ["server.address", host],
        ["server.port", port]
      ],
      commit,
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      transformRows: options.transformResultNames && Statement.defaultTransforms(options.transformResultNames).array
    })
    return Object.assign(client, { listen: makeListen(connect, yield* Effect.scope) })
  })

/**
 * Provides the client as `PgClient` and as `SqlClient`. The connections close with the layer.
 *
 * @example
 * Effect.provide(program, PgClient.layer({ host: "localhost", database: "shop", username: "shop", password }))
 */
export const layer = (options: Options): Layer.Layer<PgClient | SqlClient.SqlClient, SqlError> =>
  Layer.provide(
    Layer.effectContext(
      Effect.map(
        make(options),
        (client) => Context.make(PgClient, client).pipe(Context.add(SqlClient.SqlClient, client))
      )
    ),
    Reactivity.layer
  )

/** Makes the compiler that turns templates into statements of PostgreSQL. {@link make} uses it. */
export const makeCompiler = (transformNames?: (name: string) => string): Statement.Compiler =>
  Statement.makeCompiler({
    dialect: "pg",
    placeholder: (index) => `$${index}`,
    onIdentifier: (name, withoutTransform) =>
      escape(transformNames === undefined || withoutTransform ? name : transformNames(name)),
    onRecordUpdate: (placeholders, alias, columns, values, returning) => [
      `(VALUES ${placeholders}) AS ${alias}${columns}${returning === undefined ? "" : ` RETURNING ${returning[0]}`}`,
      returning === undefined ? values.flat() : values.flat().concat(returning[1])
    ],
    onCustom: () => ["", []]
  })

/**
 * Commits. The server reports the commit of a transaction with a failed statement as `ROLLBACK`, which is an error
 * here.
 */
const commit = (connection: Connection): Effect.Effect<void, SqlError> =>
  Effect.flatMap(
    connection.executeRaw("COMMIT", []),
    (result) =>
      (result as pg.QueryResult).command === "COMMIT" ? Effect.void : Effect.fail(pgError(notCommitted(), "commit"))
  )

const notCommitted = () =>
  Object.assign(new Error("transaction rolled back because one of its statements failed"), { code: "25P02" })

const escape = Statement.defaultEscape("\"")

const clientConfig = (options: Options): pg.ClientConfig => ({
  connectionString: unredacted(options.url),
  host: options.host,
  port: options.port,
  database: options.database,
  user: options.username,
  password: unredacted(options.password),
  ssl: options.ssl,
  application_name: options.applicationName ?? "skein",
  connectionTimeoutMillis: millis(options.connectTimeout ?? "10 seconds"),
  statement_timeout: millis(options.statementTimeout ?? "30 seconds"),
  idle_in_transaction_session_timeout: millis(options.idleInTransactionTimeout ?? "30 seconds"),
  // Detects a server that is gone without closing the connection, also on a connection that only listens.
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000
})

const unredacted = (value: string | Redacted.Redacted<string> | undefined): string | undefined =>
  value === undefined || typeof value === "string" ? value : Redacted.value(value)

/** Converts a duration to milliseconds for `pg` and the server, for which 0 means no bound. */
const millis = (input: Duration.Input): number => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(input))
  return Number.isFinite(millis) ? Math.max(1, Math.min(Math.ceil(millis), 2_147_483_647)) : 0
}

const int8 = 20

const makeTypes = (getTypeParser: pg.CustomTypesConfig["getTypeParser"]): Types => {
  const reading = (readInt8: (text: string) => unknown): pg.CustomTypesConfig => ({
    getTypeParser:
      ((oid: number, format: "text") => oid === int8 ? readInt8 : getTypeParser(oid, format)) as pg.CustomTypesConfig[
        "getTypeParser"
      ]
  })
  return {
    bigints: reading(BigInt),
    numbers: reading((text) => {
      const number = Number(text)
      return Number.isSafeInteger(number) ? number : BigInt(text)
    })
  }
}

const ignore = () => {}

/**
 * Cancels the running statement of a client. Never fails: if it cannot be cancelled, the client's connection is closed.
 */
const cancelStatement = async (helper: pg.Client, client: pg.Client): Promise<void> => {
  try {
    await helper.connect()
    await helper.query(`SELECT pg_cancel_backend(${(client as pg.Client & { readonly processID: number }).processID})`)
  } catch {
    void client.end().catch(ignore)
  }
  await helper.end().catch(ignore)
}
