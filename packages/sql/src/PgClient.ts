/**
 * A client of PostgreSQL on `@effect/sql-pg`: its connections behind Effect's `SqlClient`, and a `LISTEN` that reconnects.
 *
 * **When to use**
 *
 * For any number of processes on one database. `@effect/sql-pg` is a peer dependency and is loaded when the layer is
 * built. Compared with its own client, this one bounds each wait for a server that does not react, converts the values
 * that JavaScript has types for, and reports the server's text and the reason of each error.
 *
 * **Gotchas**
 *
 * - The settings of the server determine the durability: with `synchronous_commit = on` a commit survives a power
 *   failure.
 * - When the server goes away, statements on open connections fail with `ConnectionError`. These connections are
 *   discarded, and the next statement opens a new one. No statement is retried: whether a running one was executed is
 *   unknown.
 * - An interrupted statement is cancelled on the server, through another connection. If the statement has not ended
 *   after 5 seconds, its connection is closed.
 * - A text contains one statement. The server refuses several, separated by `;`, with `SqlSyntaxError`.
 * - `stream` reads all rows first.
 * - Types that JavaScript has no counterpart for, as ranges, `money` or `xid8`, are read as the bytes of their binary form:
 *   write `period::text`. A value of an extension's type that is not text in its binary form, as `vector`, and an array
 *   of several dimensions must be read as text too: otherwise they close the connection, or are unreadable.
 * - A pooler that gives each transaction another connection (PgBouncer with `pool_mode = transaction`) cannot `listen`.
 *   Without `listen` it works with `prepare: false`, and with `Duration.infinity` as `statementTimeout` and
 *   `idleInTransactionTimeout`: these are settings of a connection, which other programs would share. Poolers with
 *   `pool_mode = session` need no options.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const sql = yield* PgClient.PgClient
 *   yield* sql.listen("orders", (id) => Queue.offerUnsafe(changed, id), () => Queue.offerUnsafe(changed, "*"))
 *   return yield* sql`SELECT * FROM orders WHERE done = ${false}`
 * })
 * Effect.provide(program, PgClient.layer({ url: "postgres://localhost/shop" }))
 */
import type { Config, PgConnection as Pooled, Result } from "@effect/sql-pg/PgConnection"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { Borrower, Connection } from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import type { ConnectionOptions } from "node:tls"
import {
  makeConnection,
  makeInTransaction,
  makeWatch,
  PoolBounds,
  type Watch
} from "./internal/postgres/pgConnection.ts"
import { pgError, toPgError } from "./internal/postgres/pgError.ts"
import { makeListen } from "./internal/postgres/pgListener.ts"
import { makeRegistry } from "./internal/postgres/pgTypes.ts"

/**
 * The connection to the database, and the bounds of its use. The environment variables of PostgreSQL (`PGHOST` and so
 * on) fill in members that are neither given here nor in `url`.
 */
export interface Options {
  /**
   * `postgres://user:password@host:5432/database?sslmode=…`, with the modes `disable`, `prefer`, `require` and
   * `verify-full`. The last two verify the certificate. Its parts take precedence over the members below.
   */
  readonly url?: string | Redacted.Redacted<string> | undefined
  /** A host name, or the folder of a Unix socket. */
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly database?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | Redacted.Redacted<string> | undefined
  /** Whether to use TLS. Options, as `ca`, require TLS and verify the certificate, also where `url` has an `sslmode`. */
  readonly ssl?: boolean | ConnectionOptions | undefined
  /** The name of this process in the views of the server; `skein` by default. */
  readonly applicationName?: string | undefined
  /**
   * The most connections of the pool: 10 by default. A statement that needs one more waits for it, at most
   * `connectTimeout`. The connection of `listen` and those that cancel statements are additional. Raise it for more
   * statements at the same time, within the connections that the server allows. A connection that was unused for 30
   * seconds is closed.
   */
  readonly maxConnections?: number | undefined
  /**
   * The longest wait for a connection to open or to become free: 10 seconds by default. Then the statement fails with
   * `ConnectionError`. It also bounds the wait for a server that does not react: when a statement has not ended for this
   * long after `statementTimeout`, the client closes its connection. Raise it for servers that take long to fail over.
   */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * The longest execution of one statement on the server, waiting for locks included: 30 seconds by default;
   * `Duration.infinity` for no bound. Then the statement fails with `StatementTimeoutError`. Raise it for long reports
   * and migrations.
   */
  readonly statementTimeout?: Duration.Input | undefined
  /**
   * The longest pause between two statements of a transaction: 30 seconds by default; `Duration.infinity` for no bound.
   * Then the server ends the transaction and its connection, so that a process that is stopped in the middle does not
   * hold its locks forever. Raise it for transactions that wait for other systems.
   */
  readonly idleInTransactionTimeout?: Duration.Input | undefined
  /**
   * Whether statements are prepared: `true` by default; `false` for connection poolers that do not support it. The server
   * compiles a prepared statement once, which halves its work. The client prepares each statement that is not
   * `unprepared`, up to 200 of each connection, and then closes the one that the connection has not run for the longest
   * time.
   */
  readonly prepare?: boolean | undefined
  /**
   * Other settings of each connection by name, as `{ search_path: "shop" }`: none by default. They are sent before its first
   * statement, which fails if PostgreSQL refuses one.
   */
  readonly settings?: { readonly [name: string]: string } | undefined
  /** Renames identifiers in statements, for example from `camelCase` to `snake_case`. By default names stay. */
  readonly transformQueryNames?: ((name: string) => string) | undefined
  /** Renames the columns of results. By default names stay, which is the fastest. */
  readonly transformResultNames?: ((name: string) => string) | undefined
}

/** A client of PostgreSQL: an `SqlClient` that can also listen. */
export interface Client extends SqlClient.SqlClient {
  /**
   * Calls `onNotification` with the payload of each `NOTIFY` on the channel until the scope closes. It returns when the
   * server listens, so no later notification is missed. It fails if the first connection cannot be opened, and with the
   * cause {@link TransactionPoolingError} if notifications do not arrive there, which the first call checks with one.
   *
   * All channels of a client share one connection. When it is lost, the client opens it again, without a limit on the
   * number of attempts: after 100 ms, then after twice the time, at most 5 seconds. Then it calls `onReconnected`,
   * because the notifications in between are lost. The two functions must not throw.
   */
  readonly listen: (
    channel: string,
    onNotification: (payload: string) => void,
    onReconnected: () => void
  ) => Effect.Effect<void, SqlError.SqlError, Scope.Scope>
}

/**
 * `listen` found that a pooler in front of the server gives each transaction another connection, as PgBouncer does with
 * `pool_mode = transaction`. There `LISTEN` succeeds and has no effect. It is the cause of an `SqlError` whose reason is
 * `UnknownError`.
 *
 * @example
 * Effect.catch(sql.listen("orders", onOrder, onGap), (error) =>
 *   error.reason.cause instanceof PgClient.TransactionPoolingError ? Effect.die("use port 5432") : Effect.fail(error))
 */
export class TransactionPoolingError extends Data.TaggedError("TransactionPoolingError") {
  override readonly message: string =
    "a pooler gives each transaction another connection, so notifications do not arrive: " +
    "connect to the server, or to a pool in session mode (PgBouncer: pool_mode = session)"
}

/** The service of a {@link Client}. */
export class PgClient extends Context.Service<PgClient, Client>()("@skein/sql/PgClient") {}

/**
 * Makes a client whose connections close with the scope. It opens one connection at once and fails if that fails.
 *
 * **Details**
 *
 * An `int8` is read as a number if it is a safe integer, else as a `bigint`. If `SqlClient.SafeIntegers` is provided,
 * it is always read as a `bigint`. So is a `time`, in microseconds. `json` and `jsonb` are parsed, and an object
 * in a template is written as JSON. `raw` returns the result of `@effect/sql-pg`.
 *
 * @example
 * const client = yield* PgClient.make({ url: process.env.DATABASE_URL, maxConnections: 20 })
 */
export const make = (options: Options): Effect.Effect<Client, SqlError.SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function*() {
    const [PgConnection, PgPool, PgTypes] = yield* Effect.promise(() =>
      Promise.all([
        import("@effect/sql-pg/PgConnection"),
        import("@effect/sql-pg/PgPool"),
        import("@effect/sql-pg/PgTypes")
      ])
    )
    const { connectTimeout = "10 seconds", idleInTransactionTimeout = "30 seconds", maxConnections = 10 } = options
    const { statementTimeout = "30 seconds" } = options
    const connectMillis = millis(connectTimeout)
    const statementMillis = millis(statementTimeout)
    const maxSilenceMillis = connectMillis === 0 || statementMillis === 0 ? 0 : connectMillis + statementMillis
    const { idleTimeout, maxPreparedStatements } = yield* PoolBounds
    const config = connectionConfig(options, makeRegistry(PgTypes), connectTimeout, maxPreparedStatements)
    const pool = yield* closingWithin(
      "5 seconds",
      inRealTime(PgPool.make({ ...config, maxConnections, idleTimeout }))
    )

    const configure = configuration({
      ...options.settings,
      statement_timeout: statementMillis,
      idle_in_transaction_session_timeout: millis(idleInTransactionTimeout)
    })
    const connections = new WeakMap<
      Pooled,
      { readonly connection: Connection; readonly inTransaction: () => boolean }
    >()
    /** The connection of a pooled one. Its first use sends its settings, which poolers refuse in the startup packet. */
    const connectionOf = (pooled: Pooled): Effect.Effect<Connection, SqlError.SqlError> => {
      const known = connections.get(pooled)
      if (known !== undefined) return Effect.succeed(known.connection)
      const connection = makeConnection(pooled, makeWatch(pooled, maxSilenceMillis))
      const inTransaction = makeInTransaction(pooled)
      return Effect.map(configure(connection), () => {
        connections.set(pooled, { connection, inTransaction })
        return connection
      })
    }

    // The pool itself does not bound the wait for a connection.
    const permits = Semaphore.makeUnsafe(maxConnections)
    const release = () => permits.release(1)
    const take = Effect.flatMap(
      permits.takeIfAvailable(1),
      (isTaken) =>
        isTaken ? Effect.void : inRealTime(Effect.timeoutOrElse(permits.take(1), {
          duration: connectTimeout,
          orElse: () =>
            Effect.fail(pgError(new Error(noConnection(connectMillis)), "connect", SqlError.ConnectionError))
        }))
    )
    const acquirer = Effect.gen(function*() {
      yield* Effect.acquireRelease(take, release, { interruptible: true })
      const pooled = yield* Effect.mapError(inRealTime(pool.get), toPgError)
      // A connection that is still in a transaction cannot be reused.
      yield* Effect.addFinalizer(() =>
        connections.get(pooled)?.inTransaction() === true ? pool.invalidate(pooled) : Effect.void
      )
      return yield* connectionOf(pooled)
    })
    const borrower: Borrower = (f) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          restore(take),
          () =>
            restore(inRealTime(pool.use((pooled) => Effect.flatMap(connectionOf(pooled), f)))).pipe(
              Effect.mapError((error) => SqlError.isSqlError(error) ? toPgError(error) as typeof error : error),
              Effect.onExit(release)
            )
        )
      )

    yield* borrower(() => Effect.void)

    const client = yield* SqlClient.make({
      acquirer,
      borrower,
      driver: "pg",
      compiler: makeCompiler(options.transformQueryNames),
      spanAttributes: [
        ["db.system.name", "postgresql"],
        ["db.namespace", config.database],
        ["server.address", config.host],
        ["server.port", config.port]
      ],
      prepareTransactionControls: true,
      commit,
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      transformRows: options.transformResultNames && Statement.defaultTransforms(options.transformResultNames).array
    })
    const listen = makeListen(inRealTime(PgConnection.make(config)), {
      check: checkNotifications(borrower, Duration.fromInputUnsafe(connectTimeout)),
      maxSilenceMillis: connectMillis,
      scope: yield* Effect.scope
    })
    return Object.assign(client, { listen })
  })

/**
 * Provides the client as `PgClient` and as `SqlClient`. The connections close with the layer.
 *
 * @example
 * Effect.provide(program, PgClient.layer({ host: "localhost", database: "shop", username: "shop", password }))
 */
export const layer = (options: Options): Layer.Layer<PgClient | SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.provide(
    Layer.effectContext(
      Effect.map(
        make(options),
        (client) => Context.make(PgClient, client).pipe(Context.add(SqlClient.SqlClient, client))
      )
    ),
    Reactivity.layer
  )

/**
 * Provides the client, as `layer`, when the server can be reached and its notifications arrive, for programs that cannot
 * do without `listen`. While the server cannot be reached, as in a restart, the layer connects again every 500 ms, for
 * `connectTimeout` in total. Fails with the cause {@link TransactionPoolingError} where notifications do not arrive.
 *
 * @example
 * Effect.provide(program, PgClient.layerListening({ url: process.env.DATABASE_URL }))
 */
export const layerListening = (options: Options): Layer.Layer<PgClient | SqlClient.SqlClient, SqlError.SqlError> => {
  // Without a bound it connects again until it succeeds.
  const attempts = Duration.toMillis(Duration.fromInputUnsafe(options.connectTimeout ?? "10 seconds")) /
    retryPauseMillis
  // A failed attempt leaves nothing behind.
  const attempt = Effect.flatMap(
    Effect.scope,
    (scope) =>
      Effect.flatMap(Scope.fork(scope), (own) =>
        Layer.buildWithScope(layer(options), own).pipe(
          Effect.tap((context) =>
            Effect.scoped(Context.get(context, PgClient).listen("skein_start", () => {}, () => {}))
          ),
          Effect.onError((cause) => Scope.close(own, Exit.failCause(cause)))
        ))
  )
  return Layer.effectContext(Effect.retry(attempt, {
    while: ({ reason }) => reason._tag === "ConnectionError",
    schedule: Schedule.spaced(retryPauseMillis),
    times: Math.floor(attempts)
  }))
}

// Milliseconds between two attempts to connect at the start.
const retryPauseMillis = 500

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
const commit = (connection: Connection): Effect.Effect<void, SqlError.SqlError> =>
  Effect.flatMap(
    connection.executeRaw("COMMIT", []),
    (result) => (result as Result).command === "COMMIT" ? Effect.void : Effect.fail(pgError(notCommitted(), "commit"))
  )

const notCommitted = () =>
  Object.assign(new Error("transaction rolled back because one of its statements failed"), { code: "25P02" })

const noConnection = (millis: number) => `no connection of the pool has become free for ${millis} ms`

const escape = Statement.defaultEscape("\"")

/**
 * Returns the configuration of a connection. A member of the options and a variable of the environment count where the
 * URL lacks the part.
 */
const connectionConfig = (
  options: Options,
  types: Config["types"],
  connectTimeout: Duration.Input,
  preparedStatementCacheSize: number
): Config => {
  const text = unredacted(options.url)
  const url = text === undefined ? null : URL.parse(text)
  const parameter = (name: string) => url?.searchParams.get(name) ?? undefined
  const { env } = process
  const host = parameter("host") ?? (decode(url?.hostname) || (options.host ?? env["PGHOST"] ?? "localhost"))
  const port = parameter("port") ?? (url?.port || (options.port ?? env["PGPORT"] ?? 5432))
  const username = parameter("user") ?? (decode(url?.username) || (options.username ?? env["PGUSER"]))
  const password = parameter("password") ??
    (decode(url?.password) || (unredacted(options.password) ?? env["PGPASSWORD"]))
  const database = parameter("dbname") ??
    (decode(url?.pathname.slice(1)) || (options.database ?? env["PGDATABASE"]))
  const { prepare = true } = options
  return {
    // The driver reads the rest of the URL, and reports an invalid one.
    url: text === undefined ? undefined : Redacted.make(text),
    host: host.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port),
    database,
    username,
    password: password === undefined ? undefined : Redacted.make(password),
    ssl: typeof options.ssl === "object" || parameter("sslmode") === undefined ? options.ssl : undefined,
    applicationName: options.applicationName ?? "skein",
    connectTimeout,
    // Detects a server that is gone without closing the connection, also on a connection that only listens.
    keepAlive: "10 seconds",
    prepare,
    preparedStatementCacheSize,
    maxMessageSize,
    types
  }
}

/** The bytes of the longest message that PostgreSQL sends. */
const maxMessageSize = 0x3fffffff

/** Decodes a part of a URL. One that is not encoded correctly stays: the driver refuses the URL. */
const decode = (part: string | undefined): string | undefined => {
  try {
    return part === undefined ? undefined : decodeURIComponent(part)
  } catch {
    return part
  }
}

/**
 * Returns the function that sends the settings of a connection, in one statement, without those that are 0. As parameters of the startup packet
 * they would need no statement, but PgBouncer refuses these.
 */
const configuration = (settings: { readonly [name: string]: string | number }) => {
  const texts = Object.entries(settings).filter(([, value]) => value !== 0).map(([name, value]) => [name, `${value}`])
  const calls = texts.map((_, n) => `set_config($${2 * n + 1}, $${2 * n + 2}, false)`)
  return (connection: Connection): Effect.Effect<unknown, SqlError.SqlError> =>
    calls.length === 0 ? Effect.void : connection.executeValuesUnprepared(`SELECT ${calls.join(", ")}`, texts.flat())
}

/**
 * Makes the function that fails where notifications do not arrive on a connection, by sending one from the pool. Two
 * connections with one process of the server share it by turns, which needs no wait for a notification.
 */
const checkNotifications = (pool: Borrower, timeout: Duration.Duration) => (listening: Pooled, watch: Watch) =>
  inRealTime(Effect.scoped(Effect.gen(function*() {
    const channel = `skein_check_${crypto.randomUUID()}`
    const run = <A, R>(statement: Effect.Effect<A, SqlError.SqlError, R>) =>
      Effect.mapError(watch(statement), toPgError)
    const own = yield* run(listening.queryValues("SELECT pg_backend_pid()", [], false))
    const notifications = yield* run(listening.listen(channel))
    const sender = yield* pool((connection) =>
      connection.executeValuesUnprepared("SELECT pg_backend_pid(), pg_notify($1, '')", [channel])
    )
    const failure = Effect.suspend(() => Effect.fail(pgError(new TransactionPoolingError(), "listen")))
    if (own[0]?.[0] === sender[0]?.[0]) return yield* failure
    yield* Effect.timeoutOrElse(Effect.mapError(Queue.take(notifications), toPgError), {
      duration: timeout,
      orElse: () => failure
    })
  })))

/** Makes a resource, and waits at most for a duration until it is closed. The pool waits for connections in use. */
const closingWithin = <A, E, R>(duration: Duration.Input, make: Effect.Effect<A, E, R | Scope.Scope>) =>
  Effect.flatMap(
    Effect.acquireRelease(Scope.make(), (scope) =>
      Effect.flatMap(
        Effect.forkDetach(Scope.close(scope, Exit.void)),
        (closing) => inRealTime(Effect.timeoutOption(Effect.interruptible(Fiber.await(closing)), duration))
      )),
    (scope) => Scope.provide(make, scope)
  )

const realClock = Context.get(Context.empty(), Clock.Clock)

/**
 * Runs an effect with the clock of the machine. A server does not wait for the clock of a test: if that one jumps, the
 * pool would look for unused connections once per `idleTimeout` of the jump, and connecting would time out.
 */
const inRealTime = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) =>
    fiber.getRef(Clock.Clock) === realClock ? effect : Effect.provideService(effect, Clock.Clock, realClock)
  )

const unredacted = (value: string | Redacted.Redacted<string> | undefined): string | undefined =>
  value === undefined || typeof value === "string" ? value : Redacted.value(value)

/** Converts a duration to milliseconds for the server and the socket, for which 0 means no bound. */
const millis = (input: Duration.Input): number => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(input))
  return Number.isFinite(millis) ? Math.max(1, Math.min(Math.ceil(millis), 2_147_483_647)) : 0
}
